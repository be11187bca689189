"""Fixtures and settings for all tests."""

import os
from pathlib import Path

os.environ.setdefault(
    "SCIPY_ARRAY_API", "1"
)  # read when scipy is imported; without it scikit-learn skips a check

import numpy as np
import pytest
from hypothesis import settings

settings.register_profile(
    "patient", deadline=None
)  # slow runs on a busy machine are not failures
settings.load_profile("patient")
ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def shared_folder() -> Path:
    """The folder of real data next to the project; skips the test if it is missing."""
    folder = Path(os.environ.get("IMPRINT_SHARED", ROOT.parent / "shared"))
    if not (folder / "embeddings").is_dir():
        pytest.skip(f"real data is not at {folder} (set IMPRINT_SHARED)")
    return folder


@pytest.fixture(scope="session")
def awkward() -> tuple[np.ndarray, np.ndarray]:
    """float32 rows with a zero row, duplicates and a class of one sample."""
    X = np.random.default_rng(0).normal(size=(60, 7)).astype(np.float32)
    X[0] = 0
    X[30:35] = X[29]
    return X, np.repeat([0, 1, 2], [29, 30, 1])
