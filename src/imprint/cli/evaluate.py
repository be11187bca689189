"""`imprint evaluate`."""

from typing import Annotated, Any

import typer

from imprint import datasets
from imprint.cli import _options as options
from imprint.cli import _terminal as terminal
from imprint.cli._files import check_model, check_page
from imprint.cli._progress import progress_bars
from imprint.cli._terminal import percent
from imprint.core.files.atomic import atomic_write
from imprint.evaluation import Evaluation, evaluation
from imprint.evaluation.labelled_rows import all_splits, count_training_rows, gather
from imprint.evaluation.page import write_evaluation
from imprint.evaluation.tags import TagEvaluation, tag_evaluation, tag_page
from imprint.imprinter import Imprinter
from imprint.tags import TagHead

MAX_CLASSES, MAX_PAIRS = 20, 5
BAR = 16  # characters


def command(
    file: options.Model,
    data: options.Data,
    page: options.Page = None,
    train: Annotated[
        str | None,
        typer.Option(metavar="DATA", help="The training data, so that the page can show the closest training inputs."),
    ] = None,
    labels: options.Labels = None,
    label_column: options.LabelColumn = None,
    separator: options.Separator = None,
    text_column: options.TextColumn = None,
    json: options.Json = False,
    backbone: options.MovedBackbone = None,
    device: options.Device = "cpu",
    threads: options.Threads = None,
    cache: options.Cache = True,
) -> None:
    """Measure the accuracy of a model on labelled data.

    Uses the test split of data that have one. Rows of classes that the model does not have count as mistakes and are
    named. Unreadable inputs are named and do not count; the exit code is then 1.
    """
    check_model(file)
    check_page(page)
    model = Imprinter.load(file, backbone=backbone, device=device, threads=threads, cache=cache)
    nesting = model.embedder.nesting(model.classes_.tolist())
    columns: dict[str, Any] = {"label_column": label_column, "text_column": text_column, "separator": separator}
    with progress_bars() as bars:
        training, *tests = all_splits(data, labels=labels, progress=bars.download, tree=nesting, **columns)
        test = tests[0] if tests else training
        if train is not None:
            training = datasets.load(train, "train", progress=bars.download, tree=nesting, **columns)
        rows = gather(model, [test], bars.embedding(), root=data)
    known, exact = count_training_rows(model, rows.X)
    if known:
        count = f"{known:,}" if exact else f"At least {known:,}"
        terminal.note(f"{count} of these rows are training data; use held-out data.")
    title = f"{file.name} on {rows.title}"
    if isinstance(head := model.state.head, TagHead):
        of_tags = tag_evaluation(head, rows.X, rows.y, rows.paths, rows.skipped)
        if page is not None:
            with atomic_write(page) as f:
                f.write(tag_page(title, of_tags, rows).encode())
        terminal.emit(of_tags.as_json()) if json else _show_tags(of_tags)
    else:
        P = model.predict_proba(rows.embedded())
        result = evaluation(P, model.classes_, rows.y, rows.paths, rows.skipped, tree=model.tree)
        if page is not None:
            write_evaluation(page, title, result, model, rows, training)
        terminal.emit(result.as_json()) if json else _show(result)
    terminal.name_page(page)
    terminal.finish(rows.skipped)


def _show_tags(result: TagEvaluation) -> None:
    """Average precision and F1 of each label."""
    summary, correct = result.summary(), result.rows - len(result.mistakes)
    terminal.write(f"{summary[0].upper()}{summary[1:]}.\n")
    terminal.write(f"All labels correct: {correct:,} of {result.rows:,} ({percent(result.accuracy)}); ")
    terminal.write(f"calibration error {100 * result.calibration_error:.1f} points.\n\n")
    columns = ["label", "rows", "average precision", "F1", "precision", "recall"]
    lines = [
        [one.label, one.rows, *map(percent, one[2:])]
        for one in sorted(result.per_label, key=lambda one: (one.rows == 0, one.f1))
    ]
    terminal.table(columns, lines, right=columns[1:])
    if result.unknown:
        terminal.note(f"The model does not have the labels {', '.join(map(terminal.printable, result.unknown))}.")


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
    lines = [
        [c.label, c.rows, f"{_bar(c.recall or 0):<{BAR}} {percent(c.recall):>7}", percent(c.precision)] for c in worst
    ]
    terminal.table(["class", "rows", "recall", "precision"], lines, right=["rows", "recall", "precision"])
    if result.mistakes:
        terminal.heading("Most confused")
        terminal.table(["class", "predicted", "rows"], _most_confused(result), right=["rows"])
    if result.unknown:
        named = ", ".join(terminal.printable(label) for label in result.unknown[:MAX_CLASSES])
        terminal.note(f"The model does not have the classes {named}: their rows count as mistakes.")


def _most_confused(result: Evaluation) -> list[list[object]]:
    """Class, predicted class and number of rows of the most frequent confusions."""
    counts = {(i, j): n for i, row in enumerate(result.confusion) for j, n in enumerate(row) if i != j and n}
    most = sorted(counts, key=lambda pair: -counts[pair])[:MAX_PAIRS]
    return [[result.classes[i], terminal.marked(result.classes[j]), counts[i, j]] for i, j in most]


def _bar(share: float) -> str:
    eighths = round(8 * BAR * share)
    return "█" * (eighths // 8) + ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8]
