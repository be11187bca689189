"""A .npz file: arrays, and a description as JSON."""

import json
from pathlib import Path

import numpy as np

from imprint.core.files.atomic import atomic_write
from imprint.export.head import MARK, Portable

SUFFIX = ".npz"


def write(path: Path, model: Portable) -> None:
    """`weights` (p, d), `owners` (p,), `classes` (C,), `norm`, the aggregator's own numbers, and the description."""
    arrays = {
        **model.tensors(),
        "classes": np.array(model.about["classes"]),
        "norm": np.array(model.about["norm"]),
        MARK: np.array(json.dumps(model.about)),
    }
    with atomic_write(path) as f:
        np.savez(f, allow_pickle=False, **arrays)
