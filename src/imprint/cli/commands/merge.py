"""Merge models into one.

The models must have the same backbone, method and seed. The result has the classes and
the training inputs of all, as if they had been fitted together. Nobody needs the inputs
themselves.
"""

import warnings
from pathlib import Path

from typer import Argument

from imprint.cli import files, models, options, terminal
from imprint.core.errors import DataWarning, ParameterError
from imprint.core.files import container
from imprint.imprinter import Imprinter


def command(
    paths: list[Path] = Argument(metavar="FILE...", help="Two or more model files."),
    output: Path = options.output("The model file to write."),
    backbone: str | None = options.MOVED_BACKBONE,
    json: bool = options.JSON,
) -> None:
    files.check_writable(output, container.read, "is not an imprint model")
    if len(paths) < 2:
        raise ParameterError("merge: give two or more model files.")
    check_distinct(paths)
    first, *others = [Imprinter.load(file, backbone=backbone) for file in paths]
    with warnings.catch_warnings(record=True) as notices:
        warnings.simplefilter("always", DataWarning)
        first.merge(*others, names=[str(file) for file in paths])
    first.save(output)
    for notice in notices:
        terminal.note(str(notice.message))
    models.report(first, output, json)


def check_distinct(paths: list[Path]) -> None:
    """Refuse a file that is named twice."""
    seen: dict[Path, Path] = {}
    for path in paths:
        target = path.resolve()
        if target in seen:
            raise ParameterError(f"merge: {path} is given twice; give each model once.")
        seen[target] = path
