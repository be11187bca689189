"""`imprint export`."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from imprint.cli import _options as options
from imprint.cli import _terminal as terminal

if TYPE_CHECKING:
    from imprint.export import Exported


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
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="The file to write. [default: next to the model]",
        ),
    ] = None,
    head_only: Annotated[bool, typer.Option("--head-only", help="Export the head without the backbone.")] = False,
    backbone: options.MovedNetwork = None,
    json: options.Json = False,
) -> None:
    """Export a model for use without imprint.

    ONNX files contain the backbone and the head in one graph, from pictures to scores. torch (safetensors) and NumPy
    files contain the head, which takes embeddings. All contain the class labels.
    """
    from imprint.cli._files import check_model, check_place
    from imprint.export import SUFFIXES, check_target, export_file

    check_model(file)
    target = output or file.with_suffix(SUFFIXES[to])
    check_place(target)
    check_target(target, to)
    _report(export_file(file, target, to, head_only=head_only, backbone=backbone), json)


def _report(exported: "Exported", json: bool) -> None:
    classes, proxies, size = (
        len(exported.model.head),
        len(exported.model.head.proxies.labels),
        exported.path.stat().st_size,
    )
    if json:
        facts = {
            "file": str(exported.path),
            "to": exported.to,
            "backbone": exported.backbone,
            "classes": exported.model.about["classes"],
        }
        terminal.emit({**facts, "proxies": proxies, "bytes": size})
        return
    holds = f"{exported.backbone} and the head" if exported.backbone else "the head without a backbone"
    counts = f"{terminal.count(classes, 'class')}, {terminal.count(proxies, 'proxy')}"
    terminal.note(f"{exported.path}: {holds}, {counts}, {size / 1e3:,.0f} kB.")
