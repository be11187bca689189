"""Give a class of a model another name.

Predictions stay the same, under the new name.
"""

from pathlib import Path

from typer import Argument

from imprint.cli import models, options
from imprint.imprinter import Imprinter


def command(
    file: Path = options.MODEL,
    old: str = Argument(metavar="OLD", help="The class."),
    new: str = Argument(metavar="NEW", help="Its new name."),
    backbone: str | None = options.MOVED_BACKBONE,
    json: bool = options.JSON,
) -> None:
    with Imprinter.change(file, backbone=backbone) as model:
        model.rename(models.label_of(model, old), models.new_label(model, new))
    models.report(model, file, json)
