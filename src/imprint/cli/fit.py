"""`imprint fit`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from imprint import aggregators, generators, recipes
from imprint.aggregators.kernel import Kernel
from imprint.cli import _options as options
from imprint.cli import _terminal as terminal
from imprint.cli._files import check_writable, is_model
from imprint.cli._learn import embed, evaluate_on_test, report
from imprint.cli.suggest import label_next
from imprint.core.errors import ParameterError
from imprint.datasets.folder import UNLABELLED
from imprint.imprinter import Imprinter
from imprint.imprinter.model import DEFAULT


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
    backbone: options.Backbone = None,
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
    """Fit a model to pictures, texts, sounds or embeddings.

    A folder has one sub-folder per class, whose name is the label, or a tree of them; a table has a column `label`. If
    the data have a `train` and a `test` part, the model is fitted on the first and evaluated on the second. A recipe is
    a complete method; options replace single parts of it.
    """
    check_writable(output, is_model, "is not an imprint model")
    given = {"generator": generator, "aggregator": aggregator}
    given |= {"norm_pre": norm_pre, "norm_post": norm_post, "norm_inf": norm_inf}
    parts: dict[str, Any] = {name: text for name, text in given.items() if text is not None}
    method = recipes.describe(recipe or DEFAULT)
    if proxies is not None:
        parts["generator"] = _with_budget(generator or method.generator, proxies)
    if centres is not None:
        parts["aggregator"] = _with_centres(aggregator or method.aggregator, centres)
    model = Imprinter(
        backbone,
        recipe=recipe,
        cache=cache,
        device=device,
        threads=threads,
        keep_head=str(keep_by) if keep_by else keep_head,
        names=names,
        tree=tree,
        calibrate=calibrate,
        random_state=seed,
        **parts,
    )
    if (data is None) == (classes is None):
        raise ParameterError("fit: give DATA, or the names of classes without examples: --classes 'NAME, NAME'.")
    if data is None:
        model.fit_names(_class_names(classes or "")).save(output)
        report(model, output, None, json)
        return
    columns = {"labels": labels, "label_column": label_column, "text_column": text_column, "separator": separator}
    rows, parts_of_data = embed(model, data, **columns)
    model.fit(rows).save(output)
    tested = evaluate_on_test(model, data, columns) if "test" in parts_of_data else None
    report(model, output, rows, json, tested)
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
    if not hasattr(generators.family.resolve(generator), "k"):
        raise ParameterError(f"--proxies: {generator} has no k, a number of proxies per class, that could be set.")
    return str(generators.family.changed(generator, {"k": proxies}))


def _with_centres(aggregator: str, centres: int) -> str:
    if not isinstance(aggregators.family.resolve(aggregator), Kernel):
        raise ParameterError(f"--centres: {aggregator} has no centres; use --aggregator kernel.")
    return str(aggregators.family.changed(aggregator, {"centres": centres}))
