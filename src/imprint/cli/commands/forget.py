"""Remove a class, or single inputs, from a model.

The result is identical to a model that never saw them. In a tree of classes, `animal/`
removes all classes below the node `animal`. With --input, inputs are removed from the
class or, without LABEL, from all classes. Inputs of large classes can be removed if the
model was fitted with --keep-rows.
"""

from pathlib import Path

from typer import Argument, Option

from imprint.cli import models, options, terminal
from imprint.core.errors import ParameterError
from imprint.imprinter import Imprinter


def command(
    file: Path = options.MODEL,
    label: str | None = Argument(
        None,
        metavar="LABEL",
        help="The class, or a node of a tree with a slash at its end.",
    ),
    inputs: list[str] | None = Option(
        None,
        "--input",
        metavar="INPUT",
        help="A training input to remove: a file or a text; may be repeated.",
        rich_help_panel=options.DATA_SECTION,
    ),
    backbone: str | None = options.MOVED_BACKBONE,
    json: bool = options.JSON,
) -> None:
    if label is None and not inputs:
        raise ParameterError("forget: name a class, or inputs with --input.")
    with Imprinter.change(file, backbone=backbone) as model:
        name = None if label is None else models.label_of(model, label)
        if inputs:
            table = options.UnlabelledColumns(None, None)
            split = models.read_inputs(inputs, model.embedder.kind, table)
            rows = model.look(split)
            if rows.skipped:
                first = rows.skipped[0]
                raise ParameterError(f"Cannot read {first.name}: {first.reason}.")
            model.forget_rows(rows, name)
            count = model.embedder.kind.count(len(rows.X))
        else:
            model.forget(name)
    if inputs:
        terminal.note(f"Forgot {count}.")
    models.report(model, file, json)
