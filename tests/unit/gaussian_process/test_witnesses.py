"""The doubt of a system with many proxies follows from one smaller system."""

import numpy as np

from imprint.gaussian_process import posterior
from imprint.gaussian_process.posterior import MAX_WITNESSES, solve


def test_the_smaller_system_is_not_reduced_again(monkeypatch):
    """With 150 classes of 15 proxies, shares of 13.65 are rounded up: 2,100 proxies are chosen."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(150), 15)
    weights = rng.normal(size=(len(labels), 4)).astype("float32")
    system = solve(weights, labels, np.full(len(labels), 0.1), 0.3)
    witnesses = system.witnesses
    assert len(witnesses.labels) == 2100 > MAX_WITNESSES
    monkeypatch.setattr(posterior, "solve", None)  # nothing is solved for an answer
    queries = rng.normal(size=(5, 4)).astype("float32")
    assert witnesses.witnesses is witnesses
    chosen = posterior.witnesses_of(labels, np.arange(len(labels)))
    K = np.exp(-0.3 * ((weights[chosen, None] - weights[chosen]) ** 2).sum(axis=2))
    k = np.exp(-0.3 * ((queries[:, None] - weights[chosen]) ** 2).sum(axis=2))
    inverse = np.linalg.inv(K.astype(float) + 0.1 * np.eye(len(chosen)))
    expected = np.sqrt(1 - np.einsum("qi,ij,qj->q", k, inverse, k))
    assert np.allclose(system.doubt(queries), expected, atol=1e-4)
