"""What `fit`, `add` and `forget` share: embedding with progress, and the report on the model."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from imprint import datasets
from imprint.cli import _terminal as terminal
from imprint.cli._files import check_home, words
from imprint.core.label_sets import indicator
from imprint.evaluation.evaluation import describe_expected
from imprint.evaluation.tags import TagEvaluation, tag_evaluation
from imprint.imprinter import Embedded, Imprinter
from imprint.tags import TagHead

if TYPE_CHECKING:
    from imprint.evaluation import Evaluation


def embed(model: Imprinter, spec: str, **columns: Any) -> tuple[Embedded, tuple[str, ...]]:
    """The embeddings of labelled data, with progress, and the parts that the data have.

    Prints what the data are, and names inputs that cannot be read.
    """
    with terminal.bars() as bars:
        nesting = model.embedder.nesting(model.classes_.tolist() if model.fitted else ())
        split = datasets.load(spec, "train", progress=bars.download, tree=nesting, **columns)
        model.embedder.choose(split.kind)
        by = f", by {model.embedder.spec}" if split.kind.needs_backbone else ""
        terminal.note(f"{split.found}{by}.")
        if "test" in split.parts:
            terminal.note("The data have a train and a test part: this uses train; test is for evaluation.")
        if model.embedder.cache and split.kind.needs_backbone:
            check_home()
        rows = model.embedder.labelled(split, progress=bars.embedding())
    for line in rows.notices:
        terminal.note(line)
    terminal.skipped(rows.skipped)
    return rows, split.parts


def on_test_part(model: Imprinter, spec: str, columns: dict[str, Any]) -> "Evaluation | TagEvaluation":
    """How good the model is on the test part of the data."""
    from imprint.evaluation import evaluation
    from imprint.evaluation.labelled_rows import all_splits, gather

    with terminal.bars() as bars:
        tree = model.embedder.nesting(model.classes_.tolist())
        rows = gather(model, all_splits(spec, tree=tree, **columns)[-1:], bars.embedding("Testing"))
    if isinstance(head := model.state.head, TagHead):
        return tag_evaluation(head, rows.X, rows.y, rows.paths, rows.skipped)
    return evaluation(model.predict_proba(rows.embedded()), model.classes_, rows.y, rows.paths, rows.skipped)


def state(
    model: Imprinter,
    path: Path,
    rows: Embedded | None,
    json: bool,
    tested: "Evaluation | TagEvaluation | None" = None,
) -> None:
    """Print the content of the model file, and a next command."""
    labels, counts = _counts(rows)
    head, noun = model.state.head, "label" if model.state.head.tags else "class"
    if json:
        terminal.emit(
            {
                "model": str(path),
                "classes": model.classes_.tolist(),
                "proxies": len(model.state.head.proxies.labels),
                "rows": dict(zip(map(str, labels), counts)),
                **_expected(model),
                **({"test": _test_figures(tested)} if tested else {}),
                "skipped": [{"path": s.name, "reason": s.reason} for s in rows.skipped] if rows else [],
            }
        )
        return
    if rows is not None:
        imprinted = 0 if rows.y is None else len(rows.y)
        terminal.note(f"Imprinted {model.embedder.kind.count(imprinted)} of {terminal.count(len(labels), noun)}.")
    if model.state.named and rows is not None:
        terminal.note("The class names serve as one more example each (--no-names leaves them out).")
    size = f"{terminal.count(len(model.classes_), noun)}, {_proxies(model)}"
    terminal.note(f"{path}: {size}, {terminal.bytes_of(path)}.")
    for line in describe_expected(head, model.embedder.kind.plural):
        terminal.note(line)
    if isinstance(tested, TagEvaluation):
        terminal.note(f"On the test part: {tested.summary()}.")
    elif tested is not None:
        right = tested.rows - len(tested.mistakes)
        terminal.note(f"On the test part: {100 * tested.accuracy:.1f} % correct, {right:,} of {tested.rows:,}.")
    if len(model.classes_) == 1 and not head.tags:
        terminal.note(f"The model has one class: every input is classified as {str(model.classes_[0])!r}.")
        terminal.note(f"Next: {words('imprint', 'add', path, 'DATA')}")
    else:
        terminal.note(f"Next: {words('imprint', 'predict', path, _example(model))}")


def _example(model: Imprinter) -> str:
    kind = model.embedder.kind
    return kind.noun.upper() if kind.needs_backbone else "TABLE"


def _expected(model: Imprinter) -> dict[str, Any]:
    """The expected accuracy of a calibrated model and its interval; null if unknown."""
    if not model.calibrated:
        return {}
    values = [model.expected_accuracy_, *model.expected_interval_]
    accuracy, low, high = (round(v, 6) if np.isfinite(v) else None for v in values)
    return {"expected_accuracy": accuracy, "expected_interval": [low, high]}


def _test_figures(tested: "Evaluation | TagEvaluation") -> dict[str, Any]:
    figures = ("mean_average_precision", "macro_f1", "micro_f1") if isinstance(tested, TagEvaluation) else ()
    return {name: getattr(tested, name) for name in ("accuracy", *figures, "rows")}


def _counts(rows: Embedded | None) -> tuple[Sequence[object], Sequence[int]]:
    if rows is None or rows.y is None:
        return [], []
    if rows.tags is not None:
        return rows.tags, indicator(rows.y.tolist(), rows.tags).sum(axis=0).tolist()
    labels, counts = np.unique(rows.y, return_counts=True)
    return labels.tolist(), counts.tolist()


def _proxies(model: Imprinter) -> str:
    return terminal.count(len(model.state.head.proxies.labels), "proxy")
