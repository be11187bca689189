"""`imprint add`."""

from typing import Any

from imprint.cli import _options as options
from imprint.cli import _terminal as terminal
from imprint.cli._files import check_model
from imprint.cli._learn import embed, report
from imprint.imprinter import Imprinter


def command(
    file: options.Model,
    data: options.Data,
    labels: options.Labels = None,
    label_column: options.LabelColumn = None,
    separator: options.Separator = None,
    text_column: options.TextColumn = None,
    backbone: options.MovedBackbone = None,
    device: options.Device = "cpu",
    threads: options.Threads = None,
    cache: options.Cache = True,
    json: options.Json = False,
) -> None:
    """Add classes, or more inputs of known classes, to a model.

    Other classes do not change. The file is replaced at the end; after an interruption it is unchanged. If two commands
    change one model, the second waits for the first, and the model has both changes.
    """
    check_model(file)
    network: dict[str, Any] = {"backbone": backbone, "device": device, "threads": threads}
    columns = {"labels": labels, "label_column": label_column, "text_column": text_column, "separator": separator}
    rows, _ = embed(Imprinter.load(file, cache=cache, **network), data, **columns)
    with Imprinter.change(file, **network) as model:
        copies = model.state.count_known(rows)
        model.add(rows)
    if copies:
        terminal.note(f"Already in the model: {model.embedder.kind.count(copies)}.")
    report(model, file, rows, json)
    terminal.end(rows.skipped)
