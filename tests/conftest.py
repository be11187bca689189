"""What every test may ask for."""

import os
from pathlib import Path

os.environ.setdefault("SCIPY_ARRAY_API", "1")  # read when scipy is imported; else scikit-learn skips a check

import numpy as np
import pytest
from hypothesis import settings

settings.register_profile("patient", deadline=None)  # a busy machine is no failure
settings.load_profile("patient")
ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def shared_folder() -> Path:
    """The folder of real data beside the project, or a skip that says what is missing."""
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
