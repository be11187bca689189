"""What commands about models share: embedding with progress, evaluation, and the report on a model."""

from pathlib import Path

import numpy as np

from imprint import datasets
from imprint.cli import files, terminal
from imprint.cli.options import TagColumns
from imprint.core.files.atomic import atomic_write
from imprint.core.label_sets import indicator
from imprint.evaluation.evaluation import Evaluation, evaluation
from imprint.evaluation.expected import describe_expected
from imprint.evaluation.labelled_rows import LabelledRows
from imprint.evaluation.tags import TagEvaluation, tag_evaluation
from imprint.imprinter import Embedded, Imprinter
from imprint.modalities import Modality
from imprint.tags import TagHead

Result = Evaluation | TagEvaluation


def choose_backbone(model: Imprinter, kind: Modality) -> None:
    """Choose the default backbone for some data if none was named; refuse a cache that cannot be written."""
    model.embedder.choose(kind)
    if model.embedder.cache and kind.needs_backbone:
        files.check_home()


def embed(model: Imprinter, data: str, columns: TagColumns) -> tuple[Embedded, bool]:
    """The embeddings of labelled data, with progress, and whether the data have a test part.

    Prints a description of the data.
    """
    with terminal.progress_bars() as bars:
        nesting = model.embedder.nesting(model.classes_.tolist() if model.fitted else ())
        split = datasets.load(data, "train", progress=bars.download, tree=nesting, **vars(columns))
        choose_backbone(model, split.kind)
        by = f", by {model.embedder.spec}" if split.kind.needs_backbone else ""
        terminal.note(f"{split.found}{by}.")
        if has_test := "test" in split.parts:
            terminal.note("The data have a train and a test part: this uses train; test is for evaluation.")
        rows = model.embedder.labelled(split, progress=bars.embedding())
    for line in rows.notices:
        terminal.note(line)
    return rows, has_test


def evaluate(model: Imprinter, rows: LabelledRows) -> Result:
    """The results of a model on labelled rows."""
    if isinstance(head := model.state.head, TagHead):
        return tag_evaluation(head, rows.X, rows.y, rows.paths, rows.skipped)
    P = head.probabilities(head.scores(rows.X))
    return evaluation(P, head.classes, rows.y, rows.paths, rows.skipped, tree=model.tree)


def write_page(path: Path, page: str) -> None:
    """Write the HTML of a page, and print its size."""
    with atomic_write(path) as f:
        f.write(page.encode())
    terminal.note(f"The page: {path}, {terminal.bytes_of(path)}.")


def report(
    model: Imprinter, path: Path, json: bool, rows: Embedded | None = None, tested: Result | None = None
) -> None:
    """Print what the model file holds, and the next command."""
    head, kind, classes = model.state.head, model.embedder.kind, model.classes_
    rows_per_class: dict[str, int] = {}
    if rows is not None and rows.y is not None:
        labels, counts = np.unique(rows.y, return_counts=True)
        if rows.tags is not None:
            labels, counts = np.asarray(rows.tags), indicator(rows.y.tolist(), rows.tags).sum(axis=0)
        rows_per_class = dict(zip(map(str, labels.tolist()), counts.tolist()))
    proxies = len(head.proxies.labels)
    if json:
        facts = {"model": str(path), "classes": classes.tolist(), "proxies": proxies, "rows": rows_per_class}
        if model.calibrated:
            values = [model.expected_accuracy_, *model.expected_interval_]
            accuracy, *interval = (round(v, 6) if np.isfinite(v) else None for v in values)
            facts |= {"expected_accuracy": accuracy, "expected_interval": interval}
        if tested is not None:
            figures = ("mean_average_precision", "macro_f1", "micro_f1") if isinstance(tested, TagEvaluation) else ()
            facts["test"] = {name: getattr(tested, name) for name in ("accuracy", *figures, "rows")}
        terminal.emit(facts | {"skipped": [{"path": s.name, "reason": s.reason} for s in rows.skipped] if rows else []})
        return
    noun = "label" if head.tags else "class"
    if rows is not None:
        terminal.note(f"Imprinted {kind.count(len(rows.X))} of {terminal.count(len(rows_per_class), noun)}.")
        if model.state.named:
            terminal.note("The class names serve as one more example each (--no-names leaves them out).")
    size = f"{terminal.count(len(classes), noun)}, {terminal.count(proxies, 'proxy')}"
    terminal.note(f"{path}: {size}, {terminal.bytes_of(path)}.")
    for line in describe_expected(head, kind.plural):
        terminal.note(line)
    if isinstance(tested, TagEvaluation):
        terminal.note(f"On the test part: {tested.summary()}.")
    elif tested is not None:
        correct = tested.rows - len(tested.mistakes)
        terminal.note(f"On the test part: {terminal.percent(tested.accuracy)} correct, {correct:,} of {tested.rows:,}.")
    if len(classes) == 1 and not head.tags:
        terminal.note(f"The model has one class: every input is classified as {str(classes[0])!r}.")
        terminal.note(f"Next: {files.quoted('imprint', 'add', path, 'DATA')}")
    else:
        example = kind.noun.upper() if kind.needs_backbone else "TABLE"
        terminal.note(f"Next: {files.quoted('imprint', 'predict', path, example)}")
