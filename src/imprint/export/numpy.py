"""A .npz file: arrays, and a description as JSON."""

import json
from pathlib import Path

import numpy as np

from imprint.core.atomic import atomic_write
from imprint.export.head import MARK, Head

SUFFIX = ".npz"


def write(path: Path, head: Head) -> None:
    """`weights` (p, d), `owners` (p,), `classes` (C,), `norm`, and the description under `imprint.export`."""
    arrays = {
        "weights": head.weights,
        "owners": head.owners,
        "classes": np.array(head.classes),
        "norm": np.array(head.about["norm"]),
        MARK: np.array(json.dumps(head.about)),
    }
    with atomic_write(path) as f:
        np.savez(f, allow_pickle=False, **arrays)
