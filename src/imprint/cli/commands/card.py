"""Write the model card of a model.

It states data, classes, expected accuracy, backbone, licence, use and limits. The
Markdown has the front matter that the Hugging Face hub reads.
"""

from pathlib import Path

from imprint.cli import files, options, terminal
from imprint.core.files.atomic import atomic_write
from imprint.head.card import HEADING
from imprint.imprinter import Imprinter


def command(
    file: Path = options.MODEL,
    output: Path | None = options.output(
        "Write the Markdown here, such as README.md.", None
    ),
    json: bool = options.JSON,
    backbone: str | None = options.MOVED_BACKBONE,
) -> None:
    if output is not None:
        files.check_writable(
            output,
            lambda path: HEADING in path.read_text("utf-8", "replace"),
            "is not a model card",
        )
    card = Imprinter.load(file, backbone=backbone).card()
    if output is not None:
        with atomic_write(output) as f:
            f.write(card.markdown(file.name).encode())
        terminal.note(f"Wrote the model card to {output}.")
    if json:
        terminal.emit(card.as_json())
    elif output is None:
        terminal.write(card.markdown(file.name))
