"""Tensors in, tensors out."""

import numpy as np
import pytest

from imprint import ImprintClassifier
from imprint.core.arrays import is_torch
from imprint.core.errors import ParameterError

torch = pytest.importorskip("torch", reason="the extra 'torch' is not installed")
RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(40, 6)).astype(np.float32), np.repeat([3, 5, 7, 9], 10)


@pytest.mark.parametrize("aggregator", ["max", "nearest(m=2)", "kernel"])
def test_results_have_the_type_of_the_input(aggregator):
    parts = dict(generator="kmeans(k=2)", aggregator=aggregator, random_state=0)
    a = ImprintClassifier(**parts).fit(X, Y)
    b = ImprintClassifier(**parts).fit(torch.from_numpy(X), torch.from_numpy(Y))
    for call in ("predict", "predict_proba", "decision_function"):
        there, here = getattr(b, call)(torch.from_numpy(X)), getattr(a, call)(X)
        assert isinstance(there, torch.Tensor)
        assert there.dtype == torch.from_numpy(here).dtype
        assert np.array_equal(there.numpy(), here)
    assert b.score(torch.from_numpy(X), torch.from_numpy(Y)) == a.score(X, Y)
    assert b.partial_fit(torch.zeros(1, 6), torch.tensor([11])).classes_.tolist() == [
        3,
        5,
        7,
        9,
        11,
    ]


def test_text_labels_stay_numpy():
    clf = ImprintClassifier(generator="mean").fit(torch.from_numpy(X), Y.astype(str))
    assert clf.predict(torch.from_numpy(X)).dtype.kind == "U"


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_precision(dtype):
    T = torch.from_numpy(X).to(getattr(torch, dtype))
    clf = ImprintClassifier(generator="mean").fit(T, Y)
    want = np.float64 if dtype == "float64" else np.float32
    assert clf.proxies_.weights.dtype == want
    assert clf.decision_function(T).numpy().dtype == want


def test_gradients_and_inputs_do_not_change():
    T = torch.from_numpy(X.copy()).requires_grad_()
    ImprintClassifier(generator="mean").fit(T, Y).predict(T)
    assert T.grad is None
    assert np.array_equal(T.detach().numpy(), X)


def test_a_lazily_negated_tensor_is_read():
    lazy = torch.complex(torch.zeros(40, 6), torch.from_numpy(-X)).conj().imag
    assert lazy.is_neg()
    clf = ImprintClassifier(generator="mean").fit(X, Y)
    assert np.array_equal(clf.predict(lazy).numpy(), clf.predict(X))


def test_rows_on_a_gpu_determine_the_number_of_columns(monkeypatch):
    """The checks for GPU tensors, which scikit-learn does not check, run here on CPU tensors."""
    monkeypatch.setattr("imprint.estimator.base.on_gpu", is_torch)
    clf = ImprintClassifier(generator="mean").fit(torch.from_numpy(X), Y)
    assert clf.n_features_in_ == 6
    for rows in (X[:, :5], torch.from_numpy(X[:, :5])):
        with pytest.raises(
            ParameterError,
            match="X has 5 features, but ImprintClassifier is expecting 6",
        ):
            clf.predict(rows)
    with pytest.raises(ParameterError, match="X must be finite rows"):
        clf.predict(torch.full((1, 6), torch.nan))
