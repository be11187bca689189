"""Write the model card of a model.

It states data, classes, expected accuracy, backbone, licence, use and limits. The Markdown has the front matter that
the Hugging Face hub reads.
"""

from pathlib import Path

from typer import Option

from imprint.cli import _options as options
from imprint.cli import _terminal as terminal
from imprint.cli._files import check_writable
from imprint.core.files.atomic import atomic_write
from imprint.head.card import HEADING
from imprint.imprinter import Imprinter


def command(
    file: Path = options.MODEL,
    output: Path | None = Option(
        None, "--output", "-o", metavar="FILE", help="Write the Markdown here, such as README.md."
    ),
    json: bool = options.JSON,
    backbone: str | None = options.MOVED_BACKBONE,
) -> None:
    if output is not None:
        check_writable(output, _is_card, "is not a model card")
    card = Imprinter.load(file, backbone=backbone).card()
    if output is not None:
        with atomic_write(output) as f:
            f.write(card.markdown(file.name).encode())
        terminal.note(f"Wrote the model card to {output}.")
    if json:
        terminal.emit(card.as_json())
    elif output is None:
        terminal.write(card.markdown(file.name))


def _is_card(path: Path) -> bool:
    return HEADING in path.read_text(encoding="utf-8", errors="replace")
