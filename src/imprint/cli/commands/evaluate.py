"""Measure the accuracy of a model on labelled data.

Uses the test split of data that have one. Rows of classes that the model does not have count as mistakes and are named.
Unreadable inputs are named and do not count; the exit code is then 1.
"""

from pathlib import Path

from typer import Option

from imprint import datasets
from imprint.cli import learn, options, terminal
from imprint.cli.terminal import percent
from imprint.evaluation import Evaluation
from imprint.evaluation.labelled_rows import all_splits, count_training_rows, gather
from imprint.evaluation.page import evaluation_page, tag_page
from imprint.evaluation.tags import TagEvaluation
from imprint.imprinter import Imprinter

MAX_CLASSES, MAX_PAIRS = 20, 5
BAR = 16  # characters


def command(
    file: Path = options.MODEL,
    data: str = options.DATA,
    page: Path | None = options.PAGE,
    train: str | None = Option(None, metavar="DATA", help="The training data, whose closest inputs the page shows."),
    *,
    columns: options.TagColumns,
    network: options.NetworkOfModel,
    json: bool = options.JSON,
) -> int:
    model = Imprinter.load(file, **vars(network))
    nesting = model.embedder.nesting(model.classes_.tolist())
    with terminal.progress_bars() as bars:
        training, *tests = all_splits(data, progress=bars.download, tree=nesting, **vars(columns))
        test = tests[0] if tests else training
        if train is not None:
            training = datasets.load(train, progress=bars.download, tree=nesting, **{**vars(columns), "labels": None})
        rows = gather(model, [test], bars.embedding(), root=data)
    known, exact = count_training_rows(model, rows.X)
    if known:
        terminal.note(f"{'' if exact else 'At least '}{known:,} of these rows are training data; use held-out data.")
    result, title = learn.evaluate(model, rows), f"{file.name} on {Path(data).absolute().name}"
    if json:
        terminal.emit(result.as_json())
    elif isinstance(result, TagEvaluation):
        _show_tags(result)
    else:
        _show(result)
    if page is not None:
        if isinstance(result, TagEvaluation):
            learn.write_page(page, tag_page(title, result, rows))
        else:
            learn.write_page(page, evaluation_page(title, result, rows, model, training))
    return terminal.skipped(rows.skipped)


def _show_tags(result: TagEvaluation) -> None:
    """Average precision and F1 of each label."""
    summary, correct = result.summary(), result.rows - len(result.mistakes)
    terminal.write(f"{summary[0].upper()}{summary[1:]}.\n")
    terminal.write(f"All labels correct: {correct:,} of {result.rows:,} ({percent(result.accuracy)}); ")
    terminal.write(f"calibration error {100 * result.calibration_error:.1f} points.\n\n")
    columns = ["label", "rows", "average precision", "F1", "precision", "recall"]
    worst_first = sorted(result.per_label, key=lambda one: (one.rows == 0, one.f1))
    terminal.table(columns, [[one.label, one.rows, *map(percent, one[2:])] for one in worst_first], right=columns[1:])
    if result.unknown:
        terminal.note(f"Labels that the model does not have: {', '.join(map(str, result.unknown))}.")


def _show(result: Evaluation) -> None:
    correct, balanced = result.rows - len(result.mistakes), percent(result.balanced_accuracy)
    terminal.write(f"Accuracy {percent(result.accuracy)} ({correct:,} of {result.rows:,} correct).\n")
    terminal.write(f"Balanced accuracy {balanced}, calibration error {100 * result.calibration_error:.1f} points.\n")
    for one in result.levels:
        terminal.write(f"Accuracy at level {one.level} ({one.nodes:,} nodes): {percent(one.accuracy)}.\n")
    terminal.write("\n")
    measured = [c for c in result.per_class if c.rows]
    worst = sorted(measured, key=lambda c: c.recall or 0)[:MAX_CLASSES]
    if len(worst) < len(measured):
        terminal.write(f"The {len(worst)} of {len(measured)} classes with the lowest recall:\n")
    lines = [[c.label, c.rows, f"{_bar(c.recall or 0)} {percent(c.recall):>7}", percent(c.precision)] for c in worst]
    terminal.table(["class", "rows", "recall", "precision"], lines, right=["rows", "recall", "precision"])
    if result.mistakes:
        counts = {(i, j): n for i, row in enumerate(result.confusion) for j, n in enumerate(row) if i != j and n}
        most = sorted(counts, key=lambda pair: -counts[pair])[:MAX_PAIRS]
        pairs = [[result.classes[i], terminal.marked(result.classes[j]), counts[i, j]] for i, j in most]
        terminal.heading("Most confused")
        terminal.table(["class", "predicted", "rows"], pairs, right=["rows"])
    if result.unknown:
        named = ", ".join(map(str, result.unknown[:MAX_CLASSES]))
        terminal.note(f"Classes that the model does not have: {named}. Their rows count as mistakes.")


def _bar(share: float) -> str:
    eighths = round(8 * BAR * share)
    return ("█" * (eighths // 8) + ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8]).ljust(BAR)
