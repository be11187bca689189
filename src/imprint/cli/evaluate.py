"""`imprint evaluate`."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from imprint.cli import _options as options
from imprint.cli import _terminal as terminal

if TYPE_CHECKING:
    from imprint.evaluation import Evaluation

MOST_CLASSES, MOST_PAIRS = 20, 5
BAR = 16  # characters


def command(
    file: options.Model,
    data: options.Data,
    page: options.Page = None,
    train: Annotated[
        str | None,
        typer.Option(metavar="DATA", help="What the model was fitted on, so that the page can show what decided."),
    ] = None,
    labels: options.Labels = None,
    label_column: options.LabelColumn = None,
    text_column: options.TextColumn = None,
    json: options.Json = False,
    backbone: options.MovedNetwork = None,
    device: options.Device = "cpu",
    threads: options.Threads = None,
    cache: options.Cache = True,
) -> None:
    """Say how good a model is on labelled data.

    Of data with a `train` and a `test` part the test part counts. Rows of classes that the model does not know are
    mistakes, and are named. What cannot be read is named, the others still count, and the exit code is 1.
    """
    from imprint import datasets
    from imprint.cli._files import check_model, check_page
    from imprint.evaluation import evaluation
    from imprint.evaluation.labelled_rows import count_training_rows, gather, test_split
    from imprint.imprinter import Imprinter

    check_model(file)
    if page is not None:
        check_page(page)
    model = Imprinter.load(file, backbone=backbone, device=device, threads=threads, cache=cache)
    columns: dict[str, Any] = {"label_column": label_column, "text_column": text_column}
    with terminal.bars() as bars:
        tested, training = test_split(data, labels=labels, progress=bars.download, **columns)
        if train is not None:
            training = datasets.load(train, "train", progress=bars.download, **columns)
        rows = gather(model, [tested], bars.embedding("Looking"))
    P = model.predict_proba(rows.embedded())
    found = evaluation(P, model.classes_, rows.y, rows.paths, rows.skipped)
    if page is not None:
        from imprint.evaluation.page import write_evaluation

        write_evaluation(page, f"{file.name} on {data}", found, model, rows, P, training)
    if json:
        terminal.emit(found.as_json())
    else:
        _show(found)
    if known := count_training_rows(model, rows.X):
        terminal.note(f"The model was made of at least {known:,} of these; new ones tell more about it.")
    terminal.skipped(rows.skipped)
    if page is not None:
        terminal.note(f"The page: {page}, {terminal.bytes_of(page)}.")
    terminal.end(rows.skipped)


def _show(found: "Evaluation") -> None:
    from imprint.core.printable import printable

    right = found.rows - len(found.mistakes)
    balanced = f"{100 * found.balanced_accuracy:.1f} % on the average of classes"
    terminal.write(f"{100 * found.accuracy:.1f} % right: {right:,} of {found.rows:,}; {balanced}.\n")
    terminal.write(f"Probabilities are off by {100 * found.calibration_error:.1f} points.\n\n")
    measured = [c for c in found.per_class if c.rows]
    worst = sorted(measured, key=lambda c: c.recall or 0)[:MOST_CLASSES]
    if len(worst) < len(measured):
        terminal.write(f"The {len(worst)} classes of {len(measured)} that are found least:\n")
    lines = [
        [printable(c.label, 30), c.rows, _bar(c.recall or 0), _percent(c.recall), _percent(c.precision)] for c in worst
    ]
    terminal.table(["name", "rows", "", "found", "answers right"], lines, right=["rows", "found", "answers right"])
    if found.mistakes:
        terminal.write("\nConfused most:\n" + "".join(f"  {pair}\n" for pair in _pairs(found)))
    if found.unknown:
        named = ", ".join(printable(label, 40) for label in found.unknown[:MOST_CLASSES])
        terminal.note(f"The model does not know {named}: rows labelled so count as mistakes.")


def _pairs(found: "Evaluation") -> list[str]:
    from imprint.core.printable import printable

    counts = {(i, j): n for i, row in enumerate(found.confusion) for j, n in enumerate(row) if i != j and n}
    most = sorted(counts, key=lambda pair: -counts[pair])[:MOST_PAIRS]
    names = [printable(label, 40) for label in found.classes]
    return [f"{counts[i, j]:>5,}  {names[i]} called {names[j]}" for i, j in most]


def _bar(share: float) -> str:
    eighths = round(8 * BAR * share)
    return "█" * (eighths // 8) + ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8]


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.1f} %"
