"""Best scores of prefixes and of normalised rows, from a single product."""

import numpy as np
import pytest

from imprint.kernels import cpu, stacks
from imprint.kernels.rows import lengths, unit_rows
from imprint.kernels.stacks import span_maxima, stacked


@pytest.fixture(params=[0, float("inf")], ids=["compiled", "numpy"], autouse=True)
def each_engine(request, monkeypatch):
    monkeypatch.setattr(cpu, "MIN_COMPILED_WORK", request.param)


@pytest.mark.parametrize("scores", [1, 99999])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_equals_the_products_of_every_set_alone(scores, dtype, monkeypatch):
    monkeypatch.setattr(stacks, "MAX_SCORES", scores)
    monkeypatch.setattr(stacks, "MIN_QUERIES", 5)
    rng = np.random.default_rng(0)
    Q = rng.normal(size=(23, 7)).astype(dtype)
    blocks = [-np.abs(rng.normal(size=(n, 7))).astype(dtype) for n in (8, 1, 15)]
    blocks[2][4] = 0
    sets = [
        (2, 5, False),
        (0, 3, True),
        (0, 8, False),
        (0, 3, False),
        (1, 1, True),
        (0, 8, True),
        (2, 15, True),
    ]
    stack, place = stacked(blocks, [lengths(b) for b in blocks], sets)
    maxima = span_maxima(Q, stack)[place]
    assert maxima.dtype == dtype
    rows = [
        (unit_rows(blocks[b]) if unit else blocks[b])[:size] for b, size, unit in sets
    ]
    np.testing.assert_allclose(
        maxima, [(Q @ proxies.T).max(axis=1) for proxies in rows], rtol=1e-5, atol=1e-6
    )


def test_nan_is_preserved():
    Q = np.array([[1.0, 1.0], [1.0, 0.0]], dtype=np.float32)
    rows = np.array([[1, 1], [np.inf, -np.inf], [5, 5]], dtype=np.float32)
    stack, place = stacked([rows], [None], [(0, 3, False), (0, 1, False)])
    np.testing.assert_array_equal(
        span_maxima(Q, stack)[place], [[np.nan, np.nan], [2, 1]]
    )
