"""`imprint export`."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from imprint.cli import _options as options
from imprint.cli import _terminal as terminal

if TYPE_CHECKING:
    from imprint.export import Exported


class Format(StrEnum):
    """What a model can be written as."""

    onnx = "onnx"
    torch = "torch"
    numpy = "numpy"


def command(
    file: options.Model,
    to: Annotated[Format, typer.Option("--to", help="The format.", show_default=False)],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Where it goes; beside the model, unless told."),
    ] = None,
    head_only: Annotated[bool, typer.Option("--head-only", help="Leave the backbone out of the graph.")] = False,
    backbone: options.MovedNetwork = None,
    json: options.Json = False,
) -> None:
    """Write a model for use without imprint.

    ONNX holds the backbone and the head in one graph, from pictures to scores; torch (a safetensors file) and NumPy
    hold the head, which takes embeddings. The class labels are in the file.
    """
    from imprint.cli._files import check_model, check_place
    from imprint.export import SUFFIXES, check_target, export_file

    check_model(file)
    target = output or file.with_suffix(SUFFIXES[to])
    check_place(target)
    check_target(target, to)
    made = export_file(file, target, to, head_only=head_only, backbone=backbone)
    _say(made, json)


def _say(made: "Exported", json: bool) -> None:
    classes, proxies, size = len(made.model.head), len(made.model.head.proxies.labels), made.path.stat().st_size
    if json:
        facts = {
            "file": str(made.path),
            "to": made.to,
            "backbone": made.backbone,
            "classes": made.model.about["classes"],
        }
        terminal.emit({**facts, "proxies": proxies, "bytes": size})
        return
    holds = f"{made.backbone} and the head" if made.backbone else "the head alone"
    counts = f"{terminal.count(classes, 'class')}, {terminal.count(proxies, 'proxy')}"
    terminal.note(f"{made.path}: {holds}, {counts}, {size / 1e3:,.0f} kB.")
