"""Measure the accuracy of a model on labelled data.

Uses the test split of data that have one. Rows of classes that the model does not have
count as mistakes and are named. Unreadable inputs are named and do not count; the exit
code is then 1.
"""

from collections import Counter
from pathlib import Path

from typer import Option

from imprint import datasets
from imprint.calibration.estimates import SIGNIFICANCE_LEVEL, cannot_tell
from imprint.cli import models, options, terminal
from imprint.cli.terminal import percent
from imprint.evaluation import Evaluation
from imprint.evaluation.labelled_rows import all_splits, count_training_rows, gather
from imprint.evaluation.page import evaluation_page
from imprint.evaluation.tags import TagEvaluation
from imprint.imprinter import Imprinter

MAX_CLASSES, MAX_PAIRS = 20, 5
BAR_WIDTH = 16  # characters of the bar of a recall


def command(
    file: Path = options.MODEL,
    data: str = options.DATA,
    page: Path | None = options.PAGE,
    train: str | None = Option(
        None,
        metavar="DATA",
        help="The training data, whose closest inputs the page shows.",
        rich_help_panel=options.OUTPUT_SECTION,
    ),
    *,
    columns: options.TagColumns,
    network: options.NetworkOfModel,
    json: bool = options.JSON,
) -> int:
    model = Imprinter.load(file, **vars(network))
    nesting = model.embedder.nesting(model.classes_.tolist())
    with terminal.progress_bars() as bars:
        training, *tests = all_splits(
            data,
            progress=bars.download,
            tree=nesting,
            modality=model.embedder.requested,
            **vars(columns),
        )
        test = tests[0] if tests else training
        if train is not None:
            training = datasets.load(
                train,
                progress=bars.download,
                tree=nesting,
                modality=model.embedder.requested,
                **{**vars(columns), "labels": None},
            )
        rows = gather(model, [test], bars.embedding(), root=data)
    overlap, exact = count_training_rows(model, rows.X)
    if overlap:
        terminal.note(
            f"{'' if exact else 'At least '}{overlap:,} of these rows are training"
            " data; use held-out data."
        )
    result = models.evaluate(model, rows)
    terminal.emit(result.as_json()) if json else _show(result)
    if page is not None:
        title = f"{file.name} on {Path(data).absolute().name}"
        models.write_page(page, evaluation_page(title, result, rows, model, training))
    head = model.state.head
    if head.calibrated:
        plural = model.embedder.kind.plural
        level = SIGNIFICANCE_LEVEL
        remedy = "predict with --unknown"
        terminal.note(cannot_tell(head.calibration, level, plural, remedy))
    return terminal.report_skipped(rows.skipped)


def _show(result: Evaluation | TagEvaluation) -> None:
    terminal.write(f"{result.summary()}.\n")
    if isinstance(result, TagEvaluation):
        _show_labels(result)
    else:
        _show_classes(result)
    if result.unknown:
        noun = "Labels" if isinstance(result, TagEvaluation) else "Classes"
        names = ", ".join(map(str, result.unknown[:MAX_CLASSES]))
        terminal.note(
            f"{noun} that the model does not have: {names}. Their rows count as"
            " mistakes."
        )


def _show_labels(result: TagEvaluation) -> None:
    """Average precision and F1 of each label, the lowest F1 first."""
    correct = (
        f"{result.rows - len(result.mistakes):,} of {result.rows:,}"
        f" ({percent(result.accuracy)})"
    )
    terminal.write(
        f"All labels correct: {correct}; calibration error"
        f" {100 * result.calibration_error:.1f} points.\n\n"
    )
    columns = ["label", "rows", "average precision", "F1", "precision", "recall"]
    worst_first = sorted(
        result.per_label, key=lambda label: (label.rows == 0, label.f1)
    )
    lines = [
        [label, rows, *map(percent, shares)] for label, rows, *shares in worst_first
    ]
    terminal.table(columns, lines, right=columns[1:])


def _show_classes(result: Evaluation) -> None:
    """Recall and precision of each class, the lowest recall first, and the most
    confused classes.
    """
    balanced, error = (
        percent(result.balanced_accuracy),
        f"{100 * result.calibration_error:.1f} points",
    )
    terminal.write(f"Balanced accuracy {balanced}, calibration error {error}.\n")
    for level in result.levels:
        terminal.write(
            f"Accuracy at level {level.level} ({level.nodes:,} nodes):"
            f" {percent(level.accuracy)}.\n"
        )
    terminal.write("\n")
    measured = [c for c in result.per_class if c.rows]
    worst = sorted(measured, key=lambda c: c.recall or 0)[:MAX_CLASSES]
    if len(worst) < len(measured):
        terminal.write(
            f"The {len(worst)} of {len(measured)} classes with the lowest recall:\n"
        )
    lines = [
        [
            c.label,
            c.rows,
            f"{_bar(c.recall or 0)} {percent(c.recall):>7}",
            percent(c.precision),
        ]
        for c in worst
    ]
    terminal.table(
        ["class", "rows", "recall", "precision"],
        lines,
        right=["rows", "recall", "precision"],
    )
    if result.mistakes:
        pairs = Counter((m.label, m.predicted) for m in result.mistakes).most_common(
            MAX_PAIRS
        )
        terminal.heading("Most confused")
        confused = [
            [label, terminal.marked(predicted), count]
            for (label, predicted), count in pairs
        ]
        terminal.table(["class", "predicted", "rows"], confused, right=["rows"])


def _bar(share: float) -> str:
    eighths = round(8 * BAR_WIDTH * share)
    return (
        "█" * (eighths // 8) + ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8]
    ).ljust(BAR_WIDTH)
