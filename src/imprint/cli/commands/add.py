"""Add classes, or more inputs of known classes, to a model.

Other classes do not change. The file is replaced at the end; after an interruption it
is unchanged. If two commands change one model, the second waits for the first, and the
model has both changes.
"""

from pathlib import Path

from imprint.cli import models, options, terminal
from imprint.imprinter import Imprinter


def command(
    file: Path = options.MODEL,
    data: str = options.DATA,
    *,
    columns: options.TagColumns,
    network: options.NetworkOfModel,
    json: bool = options.JSON,
) -> int:
    rows, _ = models.embed(Imprinter.load(file, **vars(network)), data, columns)
    with Imprinter.change(file, **vars(network)) as model:
        copies = model.state.count_known(rows)
        model.add(rows)
    if copies:
        terminal.note(f"Already in the model: {model.embedder.kind.count(copies)}.")
    models.report(model, file, json, rows)
    return terminal.report_skipped(rows.skipped)
