"""`imprint list`."""

from enum import StrEnum
from typing import Annotated

import typer

from imprint.cli import _options as options
from imprint.cli import _terminal as terminal


class Kind(StrEnum):
    """What can be listed."""

    backbones = "backbones"
    datasets = "datasets"
    generators = "generators"
    normalisers = "normalisers"
    aggregators = "aggregators"
    recipes = "recipes"
    studies = "studies"


def command(
    what: Annotated[Kind | None, typer.Argument(help="What to list; without it, the names of all.")] = None,
    measure: Annotated[
        bool, typer.Option("--measure", help="Of backbones: time each that is installed; some seconds.")
    ] = False,
    json: options.Json = False,
) -> None:
    """List backbones, datasets, recipes and other parts."""
    from imprint.cli._inventory import LISTS, measured, overview
    from imprint.core.errors import ParameterError

    if measure and what != Kind.backbones:
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
