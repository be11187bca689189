"""Write a model without training inputs, for others to use.

The file holds proxies that are computed from several inputs each, and the numbers of
the calibration: no embeddings of training inputs, no names of files and no texts. It
predicts as the model does, and it can be merged with others. The model card states what
it reveals.
"""

from pathlib import Path

from imprint.cli import files, models, options, terminal
from imprint.core.files import container
from imprint.imprinter import Imprinter


def command(
    file: Path = options.MODEL,
    output: Path = options.output("The model file to write."),
    backbone: str | None = options.MOVED_BACKBONE,
    json: bool = options.JSON,
) -> None:
    files.check_writable(output, container.read, "is not an imprint model")
    Imprinter.load(file, backbone=backbone).save(output, rows=False)
    shared = Imprinter.load(output, backbone=backbone)
    models.report(shared, output, json)
    if not json:
        terminal.note(shared.card().reveals)
