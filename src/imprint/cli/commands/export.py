"""Export a model for use without imprint.

ONNX files contain the backbone and the head in one graph, from images or tokens to
scores. torch (safetensors) and NumPy files contain the head, which takes embeddings.
All contain the class labels.

--whole writes a folder instead: the graph, the tokenizer of a text model, and short
programs in Python and JavaScript (Node, browsers) that prepare inputs and run it.
"""

from enum import StrEnum
from pathlib import Path
from typing import Any

from typer import Option

from imprint.cli import files, options, terminal
from imprint.core.errors import ParameterError
from imprint.export import SUFFIXES, check_target, export_file, export_whole
from imprint.export.portable import Portable
from imprint.export.whole import check_folder
from imprint.imprinter import Imprinter

ExportFormat = StrEnum("ExportFormat", ["onnx", "torch", "numpy"])


def command(
    file: Path = options.MODEL,
    to: ExportFormat | None = Option(
        None,
        "--to",
        help="The format of one file.",
        rich_help_panel=options.OUTPUT_SECTION,
    ),
    whole: bool = Option(
        False,
        "--whole",
        help="Write a folder that runs without imprint.",
        rich_help_panel=options.OUTPUT_SECTION,
    ),
    output: Path | None = options.output(
        "The file or folder to write. [default: next to the model]", None
    ),
    head_only: bool = Option(
        False,
        "--head-only",
        help="Export the head without the backbone.",
        rich_help_panel=options.OUTPUT_SECTION,
    ),
    backbone: str | None = options.MOVED_BACKBONE,
    json: bool = options.JSON,
) -> None:
    if whole == (to is not None):
        raise ParameterError(
            "Choose --to onnx, --to torch or --to numpy for one file, or --whole for a"
            " folder that runs without imprint."
        )
    if to is None:
        return _export_whole(file, output, head_only, backbone, json)
    target = output or file.with_suffix(SUFFIXES[to])
    files.check_writable(target)
    check_target(target, to)
    exported = export_file(file, target, to, head_only=head_only, backbone=backbone)
    size = target.stat().st_size
    if json:
        return terminal.emit(
            {
                "file": str(target),
                "to": exported.to,
                "backbone": exported.backbone,
                **_facts(exported.model),
                "bytes": size,
            }
        )
    parts = (
        f"{exported.backbone} and the head"
        if exported.backbone
        else "the head without a backbone"
    )
    counts = _counts(exported.model)
    terminal.note(f"{target}: {parts}, {counts}, {terminal.file_size(target)}.")


def _export_whole(
    file: Path, output: Path | None, head_only: bool, backbone: str | None, json: bool
) -> None:
    if head_only:
        raise ParameterError("--head-only goes with --to; --whole has the backbone.")
    target = output or file.with_name(f"{file.stem}-export")
    check_folder(target)
    model = Imprinter.load(file, backbone=backbone)
    exported = export_whole(model, target)
    if json:
        size = sum(path.stat().st_size for path in target.iterdir() if path.is_file())
        return terminal.emit(
            {
                "folder": str(target),
                "modality": exported.modality,
                **_facts(exported.model),
                "bytes": size,
            }
        )
    program = files.quoted("python", target / "classify.py", "INPUT")
    terminal.note(f"{target}: the whole model, {_counts(exported.model)}.")
    terminal.note(f"Next: {program}, or see {target / 'README.md'}")


def _facts(model: Portable) -> dict[str, Any]:
    """What both forms of export state about a model."""
    return {
        "classes": model.about["classes"],
        "proxies": len(model.head.proxies.labels),
    }


def _counts(model: Portable) -> str:
    classes = terminal.count(len(model.head), "class")
    return f"{classes}, {terminal.count(len(model.head.proxies.labels), 'proxy')}"
