"""`imprint export`."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from imprint.cli import _options as options
from imprint.cli import _terminal as terminal
from imprint.cli._files import check_model, check_writable
from imprint.export import SUFFIXES, check_target, export_file


class ExportFormat(StrEnum):
    """Formats of exported models."""

    onnx = "onnx"
    torch = "torch"
    numpy = "numpy"


def command(
    file: options.Model,
    to: Annotated[ExportFormat, typer.Option("--to", help="The format.", show_default=False)],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="The file to write. [default: next to the model]"),
    ] = None,
    head_only: Annotated[bool, typer.Option("--head-only", help="Export the head without the backbone.")] = False,
    backbone: options.MovedBackbone = None,
    json: options.Json = False,
) -> None:
    """Export a model for use without imprint.

    ONNX files contain the backbone and the head in one graph, from pictures to scores. torch (safetensors) and NumPy
    files contain the head, which takes embeddings. All contain the class labels.
    """
    check_model(file)
    target = output or file.with_suffix(SUFFIXES[to])
    check_writable(target)
    check_target(target, to)
    exported = export_file(file, target, to, head_only=head_only, backbone=backbone)
    head, size = exported.model.head, target.stat().st_size
    if json:
        classes, proxies = exported.model.about["classes"], len(head.proxies.labels)
        facts = {"file": str(target), "to": exported.to, "backbone": exported.backbone, "classes": classes}
        terminal.emit({**facts, "proxies": proxies, "bytes": size})
        return
    content = f"{exported.backbone} and the head" if exported.backbone else "the head without a backbone"
    counts = f"{terminal.count(len(head), 'class')}, {terminal.count(len(head.proxies.labels), 'proxy')}"
    terminal.note(f"{target}: {content}, {counts}, {size / 1e3:,.0f} kB.")
