"""The Triton programs in Triton's interpreter: slow, on the CPU, the same code that a GPU compiles."""

import os
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch", reason="the extra 'torch' is not installed")
pytest.importorskip("triton", reason="triton is not installed (it comes with torch for CUDA)")

KMEANS = """
import numpy as np, torch
from imprint.kernels.kmeans import Problem, kmeans_many
from imprint.kernels.tensor import kmeans as tensors
from imprint.kernels.tensor.fused import Fused

tensors._solver = Fused
rng = np.random.default_rng(0)


def clustered(n):
    return (rng.normal(size=(n, 24)) + 3 * rng.normal(size=(9, 24))[rng.integers(9, size=n)]).astype(np.float32)


rows = [clustered(150), clustered(70) + np.float32(1000), np.repeat(clustered(3), 20, axis=0)]
rows[0] = np.concatenate([rows[0], rows[0][:5]])[:150]
problems = [Problem(c, k, 0) for c in range(3) for k in (1, 5)]
given = [torch.from_numpy(r) for r in rows]
given[1] = torch.from_numpy(np.concatenate([rows[1][:1], rows[1]]))[1:, :]  # begins where 16 bytes need not divide
for p, a, b in zip(problems, kmeans_many(rows, problems), tensors.kmeans_many(given, problems)):
    assert len(a.centres) == len(b.centres), p
    assert np.isclose(a.inertia, b.inertia, rtol=1e-5, atol=1e-6), (p, a.inertia, b.inertia)
    assert np.array_equal(a.labels, b.labels), p
    np.testing.assert_allclose(a.centres, b.centres, rtol=1e-6, atol=1e-4)
    assert np.array_equal(np.bincount(b.labels), b.mass), p
"""


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU: test_kernel_tensors runs the compiled programs")
def test_programs_agree_with_plain_code():
    child = subprocess.run(
        [sys.executable, "-c", KMEANS],
        env=os.environ | {"TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert child.returncode == 0, child.stderr
