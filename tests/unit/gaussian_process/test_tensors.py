"""Systems of tensors are solved, updated and evaluated like those of arrays; also on a GPU if there is one."""

import numpy as np
import pytest

from imprint.gaussian_process.local import solve_locally
from imprint.gaussian_process.nystroem import solve_by_centres
from imprint.gaussian_process.posterior import add_classes, remove_classes, solve

torch = pytest.importorskip("torch", reason="the extra 'torch' is not installed")
RATE = 0.04
RNG = np.random.default_rng(0)
W = (RNG.normal(size=(9, 1, 12)) + RNG.normal(size=(9, 30, 12))).reshape(-1, 12)
LABELS = np.repeat(np.arange(9), 30)
NOISE = RNG.uniform(0.01, 0.3, len(W))
Q = RNG.normal(size=(50, 12))


@pytest.fixture(params=["cpu", "cuda"])
def device(request):
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("torch sees no GPU")
    return request.param


def agree(there, here, device, atol=1e-9):
    queries = torch.from_numpy(Q).to(device)
    scores = there.scores(queries)
    assert scores.device == queries.device
    np.testing.assert_allclose(scores.cpu(), here.scores(Q), atol=atol)
    np.testing.assert_allclose(there.doubt(queries).cpu(), here.doubt(Q), atol=atol)
    np.testing.assert_allclose(
        there.scores(Q), here.scores(Q), atol=atol
    )  # queries as arrays give scores as arrays
    np.testing.assert_allclose(there.doubt(Q), here.doubt(Q), atol=atol)
    np.testing.assert_allclose(
        there.coefficients, here.coefficients, atol=max(10 * atol, 1e-8)
    )
    single = there.scores(queries.float())
    assert single.dtype == torch.float32
    np.testing.assert_allclose(single.cpu(), here.scores(Q), atol=1e-4)


def test_solve(device):
    there = solve(torch.from_numpy(W).to(device), LABELS, NOISE, RATE)
    here = solve(W, LABELS, NOISE, RATE)
    agree(there, here, device)
    np.testing.assert_allclose(
        there.contributions(Q, np.full(50, 3)),
        here.contributions(Q, np.full(50, 3)),
        atol=1e-9,
    )
    queries = torch.from_numpy(Q).to(device)
    np.testing.assert_allclose(
        here.scores(queries).cpu(), here.scores(Q), atol=1e-9
    )  # tensor queries
    np.testing.assert_allclose(here.doubt(queries).cpu(), here.doubt(Q), atol=1e-9)


@pytest.mark.parametrize("block", [16, 2048])
def test_classes_are_added_and_removed(device, block, monkeypatch):
    monkeypatch.setattr("imprint.gaussian_process.cholesky.DEVICE_BLOCK_ROWS", block)

    def changed(rows):
        old, new, last = LABELS < 7, LABELS == 7, LABELS == 8
        system = remove_classes(
            solve(rows[old], LABELS[old], NOISE[old], RATE), np.array([2])
        )
        system = add_classes(system, rows[new], LABELS[new] - 1, NOISE[new])
        system = add_classes(
            remove_classes(system, np.array([0])),
            rows[last],
            LABELS[last] - 2,
            NOISE[last],
        )
        return add_classes(system, rows[:20] + 1, np.full(20, 7), NOISE[:20])

    agree(changed(torch.from_numpy(W).to(device)), changed(W), device)


def test_local_systems(device):
    there, here = (
        solve_locally(rows, LABELS, NOISE, RATE)
        for rows in (torch.from_numpy(W).to(device), W)
    )
    queries = torch.from_numpy(Q).to(device)
    for ask in ("scores", "doubt"):
        np.testing.assert_allclose(
            getattr(there, ask)(queries).cpu(), getattr(here, ask)(Q), atol=1e-9
        )
        np.testing.assert_allclose(
            getattr(there, ask)(Q), getattr(here, ask)(Q), atol=1e-9
        )


def test_centres(device):
    there = solve_by_centres(torch.from_numpy(W).to(device), LABELS, NOISE, RATE, 120)
    agree(
        there, solve_by_centres(W, LABELS, NOISE, RATE, 120), device, atol=3e-3
    )  # float32 conjugate gradients


def test_too_little_noise_is_an_error(device):
    with pytest.raises(np.linalg.LinAlgError):
        solve(
            torch.ones((3, 2), device=device).double(),
            np.arange(3),
            np.full(3, -1e-9),
            RATE,
        )
