"""`imprint card`."""

from pathlib import Path
from typing import Annotated

import typer

from imprint.cli import _options as options
from imprint.cli import _terminal as terminal


def command(
    file: options.Model,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the Markdown here, such as README.md.")
    ] = None,
    json: options.Json = False,
    backbone: options.MovedNetwork = None,
) -> None:
    """Write the model card of a model.

    It states data, classes, expected accuracy, backbone, licence, use and limits. The Markdown has the front matter
    that the Hugging Face hub reads.
    """
    from imprint.cli._files import check_model, check_place
    from imprint.core.errors import FileError
    from imprint.core.files.atomic import atomic_write
    from imprint.head.card import HEADING
    from imprint.imprinter import Imprinter

    check_model(file)
    if output is not None:
        check_place(output)
        if output.exists() and HEADING not in output.read_text(encoding="utf-8", errors="replace"):
            raise FileError(f"Cannot write {output}: it exists and is not a model card; choose another name.")
    card = Imprinter.load(file, backbone=backbone).card()
    if output is not None:
        with atomic_write(output) as f:
            f.write(card.markdown(file.name).encode())
        terminal.note(f"Wrote the model card to {output}.")
    if json:
        terminal.emit(card.as_json())
    elif output is None:
        terminal.write(card.markdown(file.name))
