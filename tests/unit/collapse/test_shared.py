"""NC1 of real embeddings of published size."""

import os
from pathlib import Path

import numpy as np
import pytest

from imprint.collapse import Accumulator, nc1
from imprint.kernels.rows import unit_rows


def embeddings(name):
    root = (
        os.environ.get("IMPRINT_SHARED")
        or Path(__file__).resolve().parents[3].parent / "shared"
    )
    path = Path(root) / "embeddings" / "full" / f"mobilenet_v1_0.25_128-{name}.npz"
    if not path.exists():
        pytest.skip(f"{path} is absent")
    with np.load(path) as pack:
        return unit_rows(
            pack["train"].astype(np.float32) * pack["scale"].astype(np.float32)
        ), pack["train_labels"]


@pytest.mark.shared
@pytest.mark.parametrize(("name", "expected"), [("mnist", 1.9130), ("cifar10", 2.7484)])
def test_nc1_of_real_embeddings(name, expected):
    X, y = embeddings(name)
    assert nc1(X, y) == pytest.approx(expected, abs=6e-5)
    assert nc1(X, y, legacy=True) > 1.1 * expected
    assert nc1(X + np.float32(0.5), y) == pytest.approx(expected, abs=6e-5)
    seen = Accumulator()
    for a in range(0, len(X), 1000):
        seen.update(X[a : a + 1000], y[a : a + 1000])
    assert seen.result().nc1 == pytest.approx(nc1(X, y), rel=1e-10)
