"""Write a model with some of the classes of another.

The result is identical to a model that never saw the other classes. The first model
does not change.
"""

from pathlib import Path

from typer import Option

from imprint.cli import files, models, options
from imprint.core.files import container
from imprint.imprinter import Imprinter


def command(
    file: Path = options.MODEL,
    classes: list[str] = Option(
        metavar="NAMES",
        help=(
            "The classes, separated by commas, or nodes of a tree with a slash at the"
            " end; may be repeated."
        ),
        rich_help_panel=options.CLASSES_SECTION,
    ),
    output: Path = options.output("The model file to write."),
    backbone: str | None = options.MOVED_BACKBONE,
    json: bool = options.JSON,
) -> None:
    files.check_writable(output, container.read, "is not an imprint model")
    model = Imprinter.load(file, backbone=backbone)
    names: list[str] = []
    for text in classes:
        # a name may hold a comma
        is_name = text in map(str, model.classes_.tolist())
        names += [text] if is_name else text.split(",")
    part = model.split([models.label_of(model, name.strip()) for name in names])
    part.save(output)
    models.report(part, output, json)
