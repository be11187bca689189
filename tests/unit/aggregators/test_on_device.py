"""A model fitted on rows on a device keeps its linear system there: fit, add, forget, known and save.

Without a GPU, CPU tensors use the same code.
"""

import numpy as np
import pytest

from imprint import ImprintClassifier
from imprint.aggregators import kernel
from imprint.core.arrays import is_torch, to_numpy

torch = pytest.importorskip("torch", reason="the extra 'torch' is not installed")
RNG = np.random.default_rng(0)
Y = np.arange(360) % 6
X = (3 * RNG.normal(size=(6, 16))[Y] + RNG.normal(size=(360, 16))).astype(np.float32)
Q = (X + RNG.normal(size=X.shape)).astype(np.float32)


@pytest.fixture(params=["cpu", "cuda"])
def device(request, monkeypatch):
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("torch sees no GPU")
    if request.param == "cpu":
        monkeypatch.setattr("imprint.head.head.on_gpu", is_torch)
    return request.param


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("calibrate", [False, True])
def test_answers_are_those_of_arrays(device, calibrate, exact, monkeypatch, tmp_path):
    monkeypatch.setattr(kernel, "_is_exact", lambda *_: exact)
    monkeypatch.setattr("imprint.gaussian_process.scale.MAX_RESOLVED_PROXIES", 100)
    parts = dict(
        generator="all",
        aggregator="kernel(centres=200)",
        calibrate=calibrate,
        random_state=0,
    )
    there, here = ImprintClassifier(**parts), ImprintClassifier(**parts)
    there.fit(torch.from_numpy(X).to(device), torch.from_numpy(Y).to(device))
    here.fit(X, Y)

    def same():
        scores = there.decision_function(torch.from_numpy(Q).to(device))
        assert str(scores.device).startswith(device)
        np.testing.assert_allclose(
            scores.cpu(), here.decision_function(Q), atol=1e-4 if exact else 5e-3
        )
        np.testing.assert_allclose(
            there.decision_function(Q),
            here.decision_function(Q),
            atol=1e-4 if exact else 5e-3,
        )

    same()
    if calibrate and exact:
        known = to_numpy(there.known(torch.from_numpy(Q).to(device)))
        np.testing.assert_allclose(known, here.known(Q), atol=0.02)
    new = X[:40] + 6
    there.partial_fit(torch.from_numpy(new).to(device), torch.full((40,), 9).to(device))
    here.partial_fit(new, np.full(40, 9))
    same()
    there.forget(2)
    here.forget(2)
    same()
    there.save(tmp_path / "model")
    back = ImprintClassifier.load(tmp_path / "model")
    np.testing.assert_allclose(
        back.decision_function(Q),
        here.decision_function(Q),
        atol=1e-4 if exact else 5e-3,
    )


def test_limits_of_size_are_checked_before_the_computation(monkeypatch):
    monkeypatch.setattr(kernel, "MAX_EXACT_PROXIES", 100)
    monkeypatch.setattr(kernel, "MAX_MEMORY", 2**20)
    model = ImprintClassifier(generator="all", aggregator="kernel", random_state=0)
    rule = r"use fewer centres, such as kernel\(centres=90\), fewer proxies, or the recipe imprint2025\.$"
    with pytest.raises(ValueError, match=rule):
        model.fit(X, Y)
    assert (
        ImprintClassifier(generator="all", aggregator="kernel(centres=90)")
        .fit(X, Y)
        .score(X, Y)
        > 0.9
    )
