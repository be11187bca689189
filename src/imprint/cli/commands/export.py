"""Export a model for use without imprint.

ONNX files contain the backbone and the head in one graph, from pictures to scores.
torch (safetensors) and NumPy files contain the head, which takes embeddings. All
contain the class labels.
"""

from enum import StrEnum
from pathlib import Path

from typer import Option

from imprint.cli import files, options, terminal
from imprint.export import SUFFIXES, check_target, export_file

ExportFormat = StrEnum("ExportFormat", ["onnx", "torch", "numpy"])


def command(
    file: Path = options.MODEL,
    to: ExportFormat = Option(..., "--to", help="The format."),
    output: Path | None = options.output(
        "The file to write. [default: next to the model]", None
    ),
    head_only: bool = Option(
        False, "--head-only", help="Export the head without the backbone."
    ),
    backbone: str | None = options.MOVED_BACKBONE,
    json: bool = options.JSON,
) -> None:
    target = output or file.with_suffix(SUFFIXES[to])
    files.check_writable(target)
    check_target(target, to)
    exported = export_file(file, target, to, head_only=head_only, backbone=backbone)
    head = exported.model.head
    proxies = len(head.proxies.labels)
    if json:
        content = {
            "backbone": exported.backbone,
            "classes": exported.model.about["classes"],
            "proxies": proxies,
        }
        return terminal.emit(
            {
                "file": str(target),
                "to": exported.to,
                **content,
                "bytes": target.stat().st_size,
            }
        )
    parts = (
        f"{exported.backbone} and the head"
        if exported.backbone
        else "the head without a backbone"
    )
    counts = f"{terminal.count(len(head), 'class')}, {terminal.count(proxies, 'proxy')}"
    terminal.note(f"{target}: {parts}, {counts}, {terminal.file_size(target)}.")
