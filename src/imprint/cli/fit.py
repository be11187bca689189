"""Fit a model to pictures, texts, sounds or embeddings.

A folder has one sub-folder per class, whose name is the label, or a tree of them; a table has a column `label`. If the
data have a `train` and a `test` part, the model is fitted on the first and evaluated on the second. A recipe is a
complete method; options replace single parts of it.
"""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from typer import Argument, Option

from imprint import aggregators, generators, recipes
from imprint.cli import _options as options
from imprint.cli import _terminal as terminal
from imprint.cli._files import check_writable
from imprint.cli._learn import embed, evaluate, report
from imprint.cli.suggest import label_next
from imprint.core.errors import FileError, ParameterError
from imprint.core.family import Family
from imprint.core.files import container
from imprint.datasets.folder import UNLABELLED
from imprint.evaluation.labelled_rows import all_splits, gather
from imprint.imprinter import Imprinter
from imprint.imprinter.model import DEFAULT

Strategy = StrEnum("Strategy", ["margin", "qi", "done"])
EXAMPLES = {"k": "kmeans", "centres": "kernel"}
"""Components that have the parameters which options set."""


@dataclass
class Parts:
    """Components that replace those of the recipe."""

    generator: str | None = Option(
        None, help="How proxies are computed, such as 'kmeans(k=5)'. [default: that of the recipe]"
    )
    aggregator: str | None = Option(
        None, help="How proxies score classes, such as 'nearest(m=3)'. [default: that of the recipe]"
    )
    norm_pre: str | None = Option(None, help="Normalisation of training embeddings: none or l2.")
    norm_post: str | None = Option(None, help="Normalisation of proxies: none, l2 or quantile.")
    norm_inf: str | None = Option(None, help="Normalisation of the embeddings of new inputs: none or l2.")


def command(
    data: str | None = Argument(None, metavar="DATA", help=options.DATA_HELP),
    output: Path = Option(..., "--output", "-o", metavar="FILE", help="The model file to write."),
    pool: Path | None = Option(None, metavar="DIR", help="Unlabelled inputs; lists which of them to label next."),
    *,
    columns: options.TagColumns,
    network: options.CachedNetwork,
    recipe: str | None = options.RECIPE,
    proxies: int | None = Option(
        None, min=1, help="Maximum number of proxies per class, a budget of memory and time. [default: 50]"
    ),
    parts: Parts,
    centres: int | None = Option(
        None,
        min=1,
        help="Maximum number of proxies in the linear system of kernel (Nystroem centres). [default: 4096]",
    ),
    calibrate: bool = Option(
        True, "--calibrate/--no-calibrate", help="Calibrate probabilities, and estimate accuracy and `known`."
    ),
    keep_head: bool = Option(
        False, "--keep-head", help="Keep the classes that the network was pre-trained on, such as ImageNet's."
    ),
    keep_by: Strategy | None = Option(
        None, help="How pre-trained and new classes compete. Implies --keep-head. [default: margin]"
    ),
    names: bool | None = Option(
        None,
        "--names/--no-names",
        help="Use the name of each class as one more example. [default: for texts, if names and examples agree]",
    ),
    classes: str | None = Option(
        None, metavar="NAMES", help="Classes without examples: their names, separated by commas."
    ),
    tree: bool | None = options.TREE,
    seed: int = Option(0, min=0, help="Random seed; the same data and seed give the same model."),
    json: bool = options.JSON,
) -> int:
    check_writable(output, _is_model, "is not an imprint model")
    chosen = {name: text for name, text in vars(parts).items() if text is not None}
    method = {**recipes.describe(recipe or DEFAULT).parts(), **chosen}
    if proxies is not None:
        chosen["generator"] = _changed("--proxies", generators.family, method["generator"], k=proxies)
    if centres is not None:
        chosen["aggregator"] = _changed("--centres", aggregators.family, method["aggregator"], centres=centres)
    model = Imprinter(
        **vars(network),
        recipe=recipe,
        keep_head=str(keep_by) if keep_by else keep_head,
        names=names,
        tree=tree,
        calibrate=calibrate,
        random_state=seed,
        **chosen,
    )
    if (data is None) == (classes is None):
        raise ParameterError("fit: give DATA, or the names of classes without examples: --classes 'NAME, NAME'.")
    if data is None:
        model.fit_names(_class_names(classes or "")).save(output)
        report(model, output, json)
        return 0
    rows, has_test = embed(model, data, columns)
    model.fit(rows).save(output)
    tested = None
    if has_test:
        with terminal.progress_bars() as bars:
            nesting = model.embedder.nesting(model.classes_.tolist())
            test = all_splits(data, tree=nesting, **vars(columns))[-1:]
            tested = evaluate(model, gather(model, test, bars.embedding("Testing")))
    report(model, output, json, rows, tested)
    unlabelled = pool or Path(data).expanduser() / UNLABELLED
    skipped = label_next(model, unlabelled) if pool is not None or unlabelled.is_dir() else ()
    return terminal.skipped([*rows.skipped, *skipped]) or (1 if tested and tested.unreadable else 0)


def _is_model(path: Path) -> bool:
    try:
        container.read(path)
    except FileError:
        return False
    return True


def _class_names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    if not all(names) or len(set(names)) < len(names) or len(names) < 2:
        raise ParameterError("--classes: give at least two different names, separated by commas.")
    return names


def _changed(option: str, family: Family[Any], component: str, **parameter: int) -> str:
    """A component with another value of a parameter, which an option sets."""
    (name,) = parameter
    if not hasattr(family.resolve(component), name):
        raise ParameterError(
            f"{option}: {component} has no {name}; use a component that has it, such as {EXAMPLES[name]}."
        )
    return str(family.changed(component, parameter))
