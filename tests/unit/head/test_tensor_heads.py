"""A head of tensors gives the same predictions as one of NumPy arrays; also on a GPU if there is one."""

import numpy as np
import pytest

from imprint import ImprintClassifier, aggregators, generators
from imprint.core.errors import ParameterError
from imprint.head import Head
from imprint.method import Method

torch = pytest.importorskip("torch", reason="the extra 'torch' is not installed")
RNG = np.random.default_rng(0)
CENTRES = 2 * RNG.normal(size=(3, 16))
X = (np.repeat(CENTRES, 200, axis=0) + RNG.normal(size=(600, 16))).astype(np.float32)
Y = np.repeat([3, 5, 9], 200)
Q = (np.repeat(CENTRES, 20, axis=0) + 2 * RNG.normal(size=(60, 16))).astype(np.float32)
ON_TENSORS = [
    name
    for name in generators.family.names()
    if generators.family.load(name).takes_tensors
]


@pytest.fixture(params=["cpu", "cuda"])
def device(request):
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("torch sees no GPU")
    return request.param


@pytest.mark.parametrize("aggregator", aggregators.family.builtin())
@pytest.mark.parametrize("generator", ON_TENSORS)
def test_tensors_give_the_same_predictions_as_arrays(generator, aggregator, device):
    names = dict(norm_pre="l2", norm_post="l2", norm_inf="l2")
    method = Method.of(
        generator=generator,
        aggregator="nearest(m=2)" if aggregator == "nearest" else aggregator,
        **names,
    )
    plain = Head(method, 0, "float32").learn(X, Y)
    there = Head(method, 0, "float32").learn(torch.from_numpy(X).to(device), Y)
    for part in ("weights", "mass", "spread"):
        np.testing.assert_allclose(
            getattr(there.proxies, part), getattr(plain.proxies, part), atol=1e-4
        )
    queries = torch.from_numpy(Q).to(device)
    S = there.scores(queries)
    assert S.device == queries.device
    np.testing.assert_allclose(S.cpu(), plain.scores(Q), atol=2e-4)
    np.testing.assert_allclose(
        there.probabilities(S).cpu(), plain.probabilities(plain.scores(Q)), atol=5e-3
    )
    assert np.array_equal(there.winners(queries).cpu(), plain.winners(Q))


def test_a_generator_that_takes_no_tensors_is_refused():
    method = Method.of(
        norm_pre="l2",
        generator="kmedoids",
        norm_post="l2",
        norm_inf="l2",
        aggregator="max",
    )
    with pytest.raises(
        ParameterError, match=r"^kmedoids\(k=20\): it does not compute on tensors"
    ):
        Head(method, 0, "float32").learn(torch.from_numpy(X), Y)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU")
@pytest.mark.parametrize("calibrate", [False, True])
def test_answers_stay_on_the_gpu(calibrate, tmp_path):
    there = [torch.from_numpy(a).cuda() for a in (X, Y, Q)]
    model = ImprintClassifier(calibrate=calibrate, random_state=0).fit(
        there[0], there[1]
    )
    plain = ImprintClassifier(calibrate=calibrate, random_state=0).fit(X, Y)
    answers = model.predict(there[2])
    assert answers.is_cuda
    assert np.array_equal(answers.cpu(), plain.predict(Q))
    np.testing.assert_allclose(
        model.predict_proba(there[2]).cpu(), plain.predict_proba(Q), atol=1e-3
    )
    model.partial_fit(there[0][:50] + 1, torch.full((50,), 7).cuda()).forget(7)
    model.save(tmp_path / "m.imprint")
    assert np.array_equal(
        ImprintClassifier.load(tmp_path / "m.imprint").predict(Q), plain.predict(Q)
    )
