"""Fit a model to images, texts, sounds or embeddings.

A folder has one sub-folder per class, whose name is the label, or a tree of them; a
table has a column `label`. If the data have a `train` and a `test` part, the model is
fitted on the first and evaluated on the second. A recipe is a complete method;
--generator, --aggregator and --norm-* replace single parts of it.
"""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from typer import Argument, Option

from imprint import aggregators, datasets, generators, recipes
from imprint.cli import files, models, options, terminal
from imprint.cli.commands.suggest import label_next
from imprint.core.errors import ParameterError
from imprint.core.files import container
from imprint.core.files.atomic import expanded
from imprint.datasets.folder import UNLABELLED
from imprint.evaluation.labelled_rows import gather
from imprint.imprinter import Imprinter
from imprint.imprinter.model import DEFAULT_RECIPE

Strategy = StrEnum("Strategy", ["margin", "qi", "done"])


@dataclass
class Parts:
    """Components that replace those of the recipe."""

    generator: str | None = Option(
        None,
        help="How proxies are computed, such as 'kmeans(k=5)'.",
        rich_help_panel=options.METHOD_SECTION,
    )
    aggregator: str | None = Option(
        None,
        help="How proxies score classes, such as 'nearest(m=3)'.",
        rich_help_panel=options.METHOD_SECTION,
    )
    norm_pre: str | None = Option(
        None,
        help="Normalisation of training embeddings: none or l2.",
        rich_help_panel=options.METHOD_SECTION,
    )
    norm_post: str | None = Option(
        None,
        help="Normalisation of proxies: none, l2 or quantile.",
        rich_help_panel=options.METHOD_SECTION,
    )
    norm_inf: str | None = Option(
        None,
        help="Normalisation of the embeddings of new inputs: none or l2.",
        rich_help_panel=options.METHOD_SECTION,
    )


def command(
    data: str | None = Argument(None, metavar="DATA", help=options.DATA_HELP),
    output: Path = options.output("The model file to write."),
    pool: Path | None = Option(
        None,
        metavar="DIR",
        help="Unlabelled inputs; lists which of them to label next.",
        rich_help_panel=options.DATA_SECTION,
    ),
    *,
    columns: options.TagColumns,
    tree: bool | None = options.TREE,
    recipe: str | None = options.RECIPE,
    proxies: int | None = Option(
        None,
        min=1,
        help="Maximum number of proxies (prototypes) per class. [default: 50]",
        rich_help_panel=options.METHOD_SECTION,
    ),
    parts: Parts,
    centres: int | None = Option(
        None,
        min=1,
        help="Maximum number of Nystroem centres of kernel. [default: 4096]",
        rich_help_panel=options.METHOD_SECTION,
    ),
    calibrate: bool = Option(
        True,
        help="Calibrate probabilities, and estimate accuracy and `known`.",
        rich_help_panel=options.STORED_SECTION,
    ),
    keep_rows: bool = Option(
        False,
        "--keep-rows",
        help=(
            "Store the embeddings and names of all training inputs, so that each of"
            " them can be forgotten. [default: up to 100 embeddings per class]"
        ),
        rich_help_panel=options.STORED_SECTION,
    ),
    keep_head: bool = Option(
        False,
        "--keep-head",
        help="Keep the network's pre-trained classes, such as ImageNet's.",
        rich_help_panel=options.CLASSES_SECTION,
    ),
    keep_by: Strategy | None = Option(
        None,
        help=(
            "How pre-trained and new classes compete. Implies --keep-head. [default:"
            " margin]"
        ),
        rich_help_panel=options.CLASSES_SECTION,
    ),
    names: bool | None = Option(
        None,
        help=(
            "Use the name of each class as one more example. [default: for texts, if"
            " names and examples agree]"
        ),
        rich_help_panel=options.CLASSES_SECTION,
    ),
    classes: str | None = Option(
        None,
        metavar="NAMES",
        help="Names of classes without examples, separated by commas.",
        rich_help_panel=options.CLASSES_SECTION,
    ),
    seed: int = Option(
        0,
        min=0,
        help="Random seed; the same data and seed give the same model.",
        rich_help_panel=options.METHOD_SECTION,
    ),
    network: options.CachedNetwork,
    json: bool = options.JSON,
) -> int:
    files.check_writable(output, container.read, "is not an imprint model")
    chosen: dict[str, Any] = {
        name: text for name, text in vars(parts).items() if text is not None
    }
    method = {**recipes.describe(recipe or DEFAULT_RECIPE).parts(), **chosen}
    for part, family, parameter, option, value in (
        ("generator", generators.family, "k", "--proxies", proxies),
        ("aggregator", aggregators.family, "centres", "--centres", centres),
    ):
        if value is not None and not hasattr(family.resolve(method[part]), parameter):
            raise ParameterError(
                f"{option}: {method[part]} has no parameter {parameter}; choose another"
                f" --{part}."
            )
        if value is not None:
            chosen[part] = str(family.changed(method[part], {parameter: value}))
    chosen |= {
        "calibrate": calibrate,
        "keep_rows": keep_rows,
        "random_state": seed,
        "keep_head": str(keep_by) if keep_by else keep_head,
    }
    model = Imprinter(**vars(network), recipe=recipe, names=names, tree=tree, **chosen)
    if (data is None) == (classes is None):
        raise ParameterError(
            "fit: give DATA, or the names of classes without examples: --classes 'NAME,"
            " NAME'."
        )
    if data is None:
        labels = [name.strip() for name in str(classes).split(",")]
        if not all(labels) or len(labels) < 2 or len(set(labels)) < len(labels):
            raise ParameterError(
                "--classes: give at least two different names, separated by commas."
            )
        model.fit_names(labels).save(output)
        models.report(model, output, json)
        return 0
    rows, has_test = models.embed(model, data, columns)
    model.fit(rows).save(output)
    test_result, skipped = None, list(rows.skipped)
    if has_test:
        with terminal.progress_bars() as bars:
            nesting = model.embedder.nesting(model.classes_.tolist())
            split = datasets.load(
                data,
                "test",
                tree=nesting,
                modality=model.embedder.requested,
                **vars(columns),
            )
            test = gather(model, [split], bars.embedding("Testing"))
        test_result = models.evaluate(model, test)
        skipped += test.skipped
    models.report(model, output, json, rows, test_result)
    unlabelled = pool or expanded(data) / UNLABELLED
    if pool is not None or unlabelled.is_dir():
        skipped += label_next(model, unlabelled)
    return terminal.report_skipped(skipped)
