"""`imprint fit`."""

from pathlib import Path
from typing import Annotated

import typer

from imprint.cli import _options as options


def command(
    folder: options.Data,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Where the model goes.")],
    backbone: options.Network = "tinynet",
    recipe: options.Recipe = "imprint2025",
    generator: options.Part = None,
    aggregator: options.Part = None,
    norm_pre: options.Part = None,
    norm_post: options.Part = None,
    norm_inf: options.Part = None,
    seed: options.Seed = 0,
    device: options.Device = "cpu",
    threads: options.Threads = None,
    cache: options.Cache = True,
    json: options.Json = False,
) -> None:
    """Make a model from a folder of pictures.

    The folder has one sub-folder per class, whose name is the label. A recipe says how proxies are made and used; its
    parts can be replaced one by one, as in --generator 'kmeans(k=5)' --aggregator 'nearest(m=3)'.
    """
    from imprint.cli._learn import check_output, embed, state
    from imprint.imprinter import Imprinter

    given = {
        "generator": generator,
        "aggregator": aggregator,
        "norm_pre": norm_pre,
        "norm_post": norm_post,
        "norm_inf": norm_inf,
    }
    parts = {name: text for name, text in given.items() if text is not None}
    model = Imprinter(backbone, recipe=recipe, random_state=seed, device=device, threads=threads, cache=cache, **parts)
    check_output(output)
    rows = embed(model, folder)
    model.fit(rows).save(output)
    state(model, output, rows, json, f"imprint predict {output} PICTURE")
