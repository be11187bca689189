"""Remove a class from a model.

The result is identical to a model that never saw the class. In a tree of classes,
`animal/` removes all classes below the node `animal`.
"""

from pathlib import Path

from typer import Argument

from imprint.cli import models, options
from imprint.imprinter import Imprinter


def command(
    file: Path = options.MODEL,
    label: str = Argument(
        metavar="LABEL", help="The class, or a node of a tree with a slash at its end."
    ),
    backbone: str | None = options.MOVED_BACKBONE,
    json: bool = options.JSON,
) -> None:
    with Imprinter.change(file, backbone=backbone) as model:
        model.forget(models.label_of(model, label))
    models.report(model, file, json)
