"""What `fit`, `add` and `forget` have in common."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from imprint import datasets
from imprint.cli import _terminal as terminal
from imprint.cli._files import check_home, words
from imprint.imprinter import Embedded, Imprinter


def embed(model: Imprinter, spec: str) -> Embedded:
    """The embeddings of labelled data, with progress; what cannot be read is named."""
    if model.cache:
        check_home()
    with terminal.bars() as bars:
        split = datasets.load(spec, "train", progress=bars.download)
        rows = model.embed(split, bars.embedding())
    terminal.skipped(rows.skipped)
    return rows


def state(model: Imprinter, path: Path, rows: Embedded | None, json: bool) -> None:
    """Say what the model file holds now, and what can be done next."""
    labels, counts = _counts(rows)
    if json:
        terminal.emit(
            {
                "model": str(path),
                "classes": model.classes_.tolist(),
                "proxies": len(model.classifier.proxies_.labels),
                "pictures": dict(zip(map(str, labels), counts)),
                "skipped": [{"path": s.name, "reason": s.reason} for s in rows.skipped] if rows else [],
            }
        )
        return
    if rows is not None:
        terminal.note(f"Imprinted {terminal.count(sum(counts), 'picture')} of {terminal.count(len(labels), 'class')}.")
    size = f"{terminal.count(len(model.classes_), 'class')}, {_proxies(model)}"
    terminal.note(f"{path}: {size}, {path.stat().st_size / 1e6:.1f} MB.")
    if len(model.classes_) == 1:
        terminal.note(f"One class alone: every picture will be called {str(model.classes_[0])!r}.")
        terminal.note(f"Next: {words('imprint', 'add', path, 'FOLDER')}")
    else:
        terminal.note(f"Next: {words('imprint', 'predict', path, 'PICTURE')}")


def _counts(rows: Embedded | None) -> tuple[Sequence[object], Sequence[int]]:
    if rows is None or rows.y is None:
        return [], []
    labels, counts = np.unique(rows.y, return_counts=True)
    return labels.tolist(), counts.tolist()


def _proxies(model: Imprinter) -> str:
    return terminal.count(len(model.classifier.proxies_.labels), "proxy")
