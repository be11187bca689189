"""Neighbour lists from one product, for every norm of queries and proxies: both engines compared with `nearest`."""

import numpy as np
import pytest

from imprint.kernels import cpu
from imprint.kernels.neighbours import nearest
from imprint.kernels.rows import lengths, unit_rows
from imprint.kernels.stacks import Neighbours, stacked

rng = np.random.default_rng(0)
BLOCKS = [(rng.normal(size=(n, 30)) + 3).astype(np.float32) for n in (40, 5, 1)]
BLOCKS[0][7] = 0
BLOCKS[1][3] = BLOCKS[1][2]
SETS = [
    (0, 40, False),
    (0, 3, False),
    (0, 40, True),
    (1, 5, True),
    (0, 12, True),
    (2, 1, False),
    (1, 5, False),
]
near = BLOCKS[0][:8] + rng.normal(
    scale=1e-3, size=(8, 30)
)  # so close that products are not sufficient
Q = np.concatenate(
    [
        rng.normal(size=(20, 30)) + 3,
        near,
        BLOCKS[0][::9] * 1.0000001,
        BLOCKS[1],
        2 * BLOCKS[1],
    ]
)
Q = Q.astype(np.float32)


@pytest.fixture(params=[0, float("inf")], ids=["compiled", "numpy"], autouse=True)
def each_engine(request, monkeypatch):
    monkeypatch.setattr(cpu, "MIN_COMPILED_WORK", request.param)


@pytest.mark.parametrize("m", [1, 7, 50])
@pytest.mark.parametrize("how", ["cosine", "euclidean", "unit"])
def test_lists_are_those_of_each_set_alone(how, m):
    stack, place = stacked(BLOCKS, [lengths(b) for b in BLOCKS], SETS)
    neighbours = Neighbours(Q, stack, m)
    lists = (
        neighbours.cosine()
        if how == "cosine"
        else neighbours.euclidean(lengths(Q) if how == "unit" else None)
    )
    queries = unit_rows(Q) if how == "unit" else Q
    for (block, size, unit), s in zip(SETS, place):
        rows = (unit_rows(BLOCKS[block]) if unit else BLOCKS[block])[:size]
        own = lists[:, neighbours.starts[s] : neighbours.starts[s + 1]]
        want = nearest(queries, rows, m, "cosine" if how == "cosine" else "euclidean")[
            0
        ]
        assert own.shape == want.shape
        np.testing.assert_allclose(
            own, want, rtol=2e-7, atol=2e-8 if how == "cosine" else 1e-12
        )


def test_equal_rows_have_no_distance():
    stack, _ = stacked(
        [BLOCKS[0]], [lengths(BLOCKS[0])], [(0, 40, False), (0, 40, True)]
    )
    neighbours = Neighbours(BLOCKS[0][:4], stack, 2)
    assert not neighbours.euclidean(None)[:, 0].any()
    assert not neighbours.euclidean(lengths(BLOCKS[0][:4]))[:, 2].any()
