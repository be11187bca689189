"""`imprint list`."""

from typing import Annotated

import typer

from imprint.cli import _options as options
from imprint.cli import _terminal as terminal

KINDS = ("backbones", "datasets", "generators", "normalisers", "aggregators", "recipes", "studies")


def command(
    what: Annotated[
        str | None,
        typer.Argument(
            metavar="|".join(KINDS),
            help="What to list; without it, the names of all.",
            autocompletion=lambda: list(KINDS),
        ),
    ] = None,
    measure: Annotated[
        bool, typer.Option("--measure", help="Of backbones: time each that is installed; some seconds.")
    ] = False,
    json: options.Json = False,
) -> None:
    """List backbones, datasets, recipes and other parts."""
    from imprint.cli._inventory import LISTS, measured, overview
    from imprint.core.errors import ParameterError
    from imprint.core.family import unknown

    if what is not None and what not in KINDS:
        raise unknown("list", what, KINDS)
    if measure and what != "backbones":
        raise ParameterError(f"list {what or ''} --measure: only backbones can be measured.")
    found = LISTS[what]() if what else overview()
    if measure:
        found = measured(found)
    if json:
        terminal.emit(found.objects)
    else:
        terminal.table(found.heads(), found.rows(), right=found.right)
        if found.footnote:
            terminal.note(found.footnote)
