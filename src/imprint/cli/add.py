"""`imprint add`."""

from typing import Any

from imprint.cli import _options as options


def command(
    file: options.Model,
    folder: options.Data,
    backbone: options.MovedNetwork = None,
    device: options.Device = "cpu",
    threads: options.Threads = None,
    cache: options.Cache = True,
    json: options.Json = False,
) -> None:
    """Add classes, or pictures of known classes, to a model.

    Other classes stay as they are. The file is replaced whole at the end: stopped half-way, it is what it was. Two of
    these on one model wait for each other, and both count.
    """
    from imprint.cli._learn import embed, state
    from imprint.imprinter import Imprinter

    network: dict[str, Any] = {"backbone": backbone, "device": device, "threads": threads}
    rows = embed(Imprinter.load(file, cache=cache, **network), folder)
    with Imprinter.change(file, **network) as model:
        model.add(rows)
    state(model, file, rows, json, f"imprint predict {file} PICTURE")
