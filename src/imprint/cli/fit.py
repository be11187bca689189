"""`imprint fit`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from imprint.cli import _options as options
from imprint.cli import _terminal as terminal
from imprint.core.errors import ParameterError


def command(
    data: options.OptionalData = None,
    *,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The model file to write.")],
    pool: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Unlabelled inputs; lists which of them to label next."),
    ] = None,
    labels: options.Labels = None,
    label_column: options.LabelColumn = None,
    separator: options.Separator = None,
    text_column: options.TextColumn = None,
    backbone: options.Network = None,
    recipe: options.Recipe = None,
    proxies: options.Proxies = None,
    generator: options.Generator = None,
    aggregator: options.Aggregator = None,
    centres: options.Centres = None,
    norm_pre: options.NormPre = None,
    norm_post: options.NormPost = None,
    norm_inf: options.NormInf = None,
    calibrate: options.Calibrate = True,
    keep_head: options.KeepHead = False,
    keep_by: options.KeepBy = None,
    names: options.Names = None,
    classes: options.Classes = None,
    tree: options.Tree = None,
    seed: options.Seed = 0,
    device: options.Device = "cpu",
    threads: options.Threads = None,
    cache: options.Cache = True,
    json: options.Json = False,
) -> None:
    """Make a model from pictures, texts or embeddings.

    A folder has one sub-folder per class, whose name is the label, or a tree of them; a table has a column `label`. If
    the data have a `train` and a `test` part, the model is fitted on the first and evaluated on the second. A recipe is
    a complete method; options replace single parts of it.
    """
    from imprint import recipes
    from imprint.cli._files import check_output
    from imprint.cli._learn import embed, on_test_part, state
    from imprint.cli.suggest import label_next
    from imprint.datasets.folder import UNLABELLED
    from imprint.imprinter import Imprinter
    from imprint.imprinter.model import DEFAULT

    given = {
        "generator": generator,
        "aggregator": aggregator,
        "norm_pre": norm_pre,
        "norm_post": norm_post,
        "norm_inf": norm_inf,
    }
    parts: dict[str, Any] = {name: text for name, text in given.items() if text is not None}
    if proxies is not None:
        parts["generator"] = _with_budget(generator or recipes.describe(recipe or DEFAULT).generator, proxies)
    if centres is not None:
        parts["aggregator"] = _with_centres(aggregator or recipes.describe(recipe or DEFAULT).aggregator, centres)
    network: dict[str, Any] = {"device": device, "threads": threads, "cache": cache}
    extra: dict[str, Any] = {"keep_head": str(keep_by) if keep_by else keep_head, "calibrate": calibrate}
    model = Imprinter(backbone, recipe=recipe, random_state=seed, names=names, tree=tree, **extra, **network, **parts)
    check_output(output)
    if (data is None) == (classes is None):
        raise ParameterError("fit: give DATA, or the names of classes without examples: --classes 'NAME, NAME'.")
    if classes is not None or data is None:
        model.fit_names(_class_names(classes or "")).save(output)
        state(model, output, None, json)
        return
    columns: dict[str, Any] = {"labels": labels, "label_column": label_column, "text_column": text_column}
    columns["separator"] = separator
    rows, parts_of_data = embed(model, data, **columns)
    model.fit(rows).save(output)
    tested = on_test_part(model, data, columns) if "test" in parts_of_data else None
    state(model, output, rows, json, tested)
    unlabelled = pool or Path(data).expanduser() / UNLABELLED
    if pool is not None or unlabelled.is_dir():
        label_next(model, unlabelled)
    terminal.end([*rows.skipped, *(tested.unreadable if tested else [])])


def _class_names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    if not all(names) or len(set(names)) < len(names) or len(names) < 2:
        raise ParameterError("--classes: give at least two different names, separated by commas.")
    return names


def _with_budget(generator: str, proxies: int) -> str:
    from dataclasses import fields

    from imprint.generators import family

    if "k" not in [f.name for f in fields(family.resolve(generator))]:
        raise ParameterError(f"--proxies: {generator} has no k, a number of proxies per class, that could be set.")
    return str(family.changed(generator, {"k": proxies}))


def _with_centres(aggregator: str, centres: int) -> str:
    from imprint.aggregators import family
    from imprint.aggregators.kernel import Kernel
    from imprint.core.errors import ParameterError

    if not isinstance(family.resolve(aggregator), Kernel):
        raise ParameterError(f"--centres: {aggregator} has no centres; use --aggregator kernel.")
    return str(family.changed(aggregator, {"centres": centres}))
