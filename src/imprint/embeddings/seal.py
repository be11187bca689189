"""From a full journal to a finished store, in steps that can each be killed and done again."""

import io
import os
from dataclasses import astuple
from pathlib import Path
from typing import Any

import numpy as np

from imprint.core.files.atomic import atomic_write
from imprint.core.version import __version__
from imprint.embeddings.journal import JOURNAL, ROWS, Journal, writing
from imprint.embeddings.manifest import LABELS, MANIFEST, NAMES, npy_header, write_manifest, write_names
from imprint.embeddings.types import Split

FORMAT = 1


def is_complete(partial: Path) -> bool:
    """Whether everything but the name of the folder is in place: the manifest is written last."""
    return (partial / MANIFEST).is_file()


def complete(partial: Path, facts: dict[str, Any], journal: Journal, split: Split) -> None:
    """Write header, labels, names and manifest; the rows reach the disk before the manifest does."""
    names, kept = split.names, np.ones(len(split.inputs), bool)
    kept[[s.index for s in journal.skipped]] = False
    with writing(partial):
        with open(partial / ROWS, "r+b") as f:
            f.write(npy_header(journal.rows, journal.width))
            f.flush()
            os.fsync(f.fileno())
        _write_labels(partial / LABELS, np.asarray(split.labels)[kept])
        write_names(partial / NAMES, (names[i] for i in np.flatnonzero(kept).tolist()))
        found = {"rows": journal.rows, "skipped": [astuple(s) for s in journal.skipped], "dtype": "<f4"}
        write_manifest(partial, facts | found | {"format": FORMAT, "imprint": __version__})


def publish(partial: Path, target: Path) -> None:
    """Give a complete folder its name."""
    with writing(partial):
        (partial / JOURNAL).unlink(missing_ok=True)
        os.rename(partial, target)


def _write_labels(path: Path, labels: np.ndarray[Any, Any]) -> None:
    buffer = io.BytesIO()
    np.save(buffer, labels, allow_pickle=False)
    with atomic_write(path) as f:
        f.write(buffer.getbuffer())
