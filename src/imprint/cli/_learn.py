"""What `fit`, `add` and `forget` have in common."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from imprint import datasets, persistence
from imprint.cli import _terminal as terminal
from imprint.core.errors import FileError
from imprint.imprinter import Embedded, Imprinter


def check_output(path: Path) -> None:
    """Refuse a place where no model can go, before any work is done."""
    if not path.parent.is_dir():
        raise FileError(f"Cannot write {path}: there is no folder {path.parent}.")
    if path.is_dir():
        raise FileError(f"Cannot write {path}: it is a folder; name a file in it, such as {path / 'model.imprint'}.")
    if path.exists() and path.stat().st_size:
        try:
            persistence.read(path)
        except FileError:
            raise FileError(f"Cannot write {path}: it exists and is no imprint model; choose another name.") from None


def embed(model: Imprinter, spec: str) -> Embedded:
    """The embeddings of labelled data, with progress; what cannot be read is named."""
    with terminal.bars() as bars:
        split = datasets.load(spec, "train", progress=bars.download)
        rows = model.embed(split, bars.embedding())
    terminal.skipped(rows.skipped)
    return rows


def state(model: Imprinter, path: Path, rows: Embedded | None, json: bool, then: str) -> None:
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
        then = f"imprint add {path} FOLDER"
    terminal.note(f"Next: {then}")


def _counts(rows: Embedded | None) -> tuple[Sequence[object], Sequence[int]]:
    if rows is None or rows.y is None:
        return [], []
    labels, counts = np.unique(rows.y, return_counts=True)
    return labels.tolist(), counts.tolist()


def _proxies(model: Imprinter) -> str:
    return terminal.count(len(model.classifier.proxies_.labels), "proxy")
