"""What `fit`, `add` and `forget` share: embedding with progress, and the report on the model."""

from pathlib import Path
from typing import Any

import numpy as np

from imprint import datasets
from imprint.cli import _terminal as terminal
from imprint.cli._files import choose_backbone, quoted
from imprint.cli._progress import progress_bars
from imprint.core.label_sets import indicator
from imprint.evaluation.evaluation import Evaluation, describe_expected, evaluation
from imprint.evaluation.labelled_rows import all_splits, gather
from imprint.evaluation.tags import TagEvaluation, tag_evaluation
from imprint.imprinter import Embedded, Imprinter
from imprint.tags import TagHead


def embed(model: Imprinter, spec: str, **columns: Any) -> tuple[Embedded, tuple[str, ...]]:
    """The embeddings of labelled data, with progress, and the names of the parts of the data (`train`, `test`).

    Prints a description of the data, and names inputs that cannot be read.
    """
    with progress_bars() as bars:
        nesting = model.embedder.nesting(model.classes_.tolist() if model.fitted else ())
        split = datasets.load(spec, "train", progress=bars.download, tree=nesting, **columns)
        choose_backbone(model, split.kind)
        by = f", by {model.embedder.spec}" if split.kind.needs_backbone else ""
        terminal.note(f"{split.found}{by}.")
        if "test" in split.parts:
            terminal.note("The data have a train and a test part: this uses train; test is for evaluation.")
        rows = model.embedder.labelled(split, progress=bars.embedding())
    for line in rows.notices:
        terminal.note(line)
    terminal.skipped(rows.skipped)
    return rows, split.parts


def evaluate_on_test(model: Imprinter, spec: str, columns: dict[str, Any]) -> Evaluation | TagEvaluation:
    """The accuracy of the model on the test part of the data."""
    with progress_bars() as bars:
        tree = model.embedder.nesting(model.classes_.tolist())
        rows = gather(model, all_splits(spec, tree=tree, **columns)[-1:], bars.embedding("Testing"))
    if isinstance(head := model.state.head, TagHead):
        return tag_evaluation(head, rows.X, rows.y, rows.paths, rows.skipped)
    return evaluation(model.predict_proba(rows.embedded()), model.classes_, rows.y, rows.paths, rows.skipped)


def report(
    model: Imprinter,
    path: Path,
    rows: Embedded | None,
    json: bool,
    tested: Evaluation | TagEvaluation | None = None,
) -> None:
    """Print the content of the model file, and a next command."""
    rows_per_class = {} if rows is None else _rows_per_class(rows)
    if json:
        facts = {
            "model": str(path),
            "classes": model.classes_.tolist(),
            "proxies": len(model.state.head.proxies.labels),
            "rows": rows_per_class,
            **_expected(model),
            **({"test": _test_figures(tested)} if tested else {}),
            "skipped": [{"path": s.name, "reason": s.reason} for s in rows.skipped] if rows else [],
        }
        terminal.emit(facts)
        return
    head, kind, classes = model.state.head, model.embedder.kind, model.classes_
    noun = "label" if head.tags else "class"
    if rows is not None:
        imprinted = 0 if rows.y is None else len(rows.y)
        terminal.note(f"Imprinted {kind.count(imprinted)} of {terminal.count(len(rows_per_class), noun)}.")
        if model.state.named:
            terminal.note("The class names serve as one more example each (--no-names leaves them out).")
    size = f"{terminal.count(len(classes), noun)}, {terminal.count(len(head.proxies.labels), 'proxy')}"
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
        terminal.note(f"Next: {quoted('imprint', 'add', path, 'DATA')}")
    else:
        example = kind.noun.upper() if kind.needs_backbone else "TABLE"
        terminal.note(f"Next: {quoted('imprint', 'predict', path, example)}")


def _expected(model: Imprinter) -> dict[str, Any]:
    """The expected accuracy of a calibrated model and its interval; null if unknown."""
    if not model.calibrated:
        return {}
    values = [model.expected_accuracy_, *model.expected_interval_]
    accuracy, low, high = (round(v, 6) if np.isfinite(v) else None for v in values)
    return {"expected_accuracy": accuracy, "expected_interval": [low, high]}


def _test_figures(tested: Evaluation | TagEvaluation) -> dict[str, Any]:
    figures = ("mean_average_precision", "macro_f1", "micro_f1") if isinstance(tested, TagEvaluation) else ()
    return {name: getattr(tested, name) for name in ("accuracy", *figures, "rows")}


def _rows_per_class(rows: Embedded) -> dict[str, int]:
    if rows.tags is not None and rows.y is not None:
        return dict(zip(map(str, rows.tags), indicator(rows.y.tolist(), rows.tags).sum(axis=0).tolist()))
    labels, counts = np.unique(np.asarray(rows.y), return_counts=True)
    return dict(zip(map(str, labels.tolist()), counts.tolist()))
