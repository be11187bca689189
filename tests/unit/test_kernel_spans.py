"""Best scores of prefixes and scaled rows out of one product."""

import numpy as np
import pytest

from imprint.kernels import engine, spans
from imprint.kernels.spans import Base, Span, span_maxima


@pytest.fixture(params=[False, True], ids=["numpy", "compiled"], autouse=True)
def each_engine(request, monkeypatch):
    monkeypatch.setattr(engine, "loaded", lambda: request.param)


@pytest.mark.parametrize(("proxies", "scores"), [(1, 1), (9, 40), (9999, 99999)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_equals_the_products_of_every_span_alone(proxies, scores, dtype, monkeypatch):
    monkeypatch.setattr(spans, "PROXIES", proxies)
    monkeypatch.setattr(spans, "SCORES", scores)
    rng = np.random.default_rng(0)
    Q = rng.normal(size=(23, 7)).astype(dtype)
    one, two, three = (-np.abs(rng.normal(size=(n, 7))).astype(dtype) for n in (8, 1, 15))
    some = (np.array([7, 0, 9, 3, 12]), np.array([3, 4, 7]), np.array([11, 12]))
    bases = [Base(one), Base(two), *(Base(three, places) for places in some), Base(one, np.array([5, 2]))]
    by = [rng.uniform(1, 5, n).astype(dtype) for n in (8, 1, 5, 3, 2, 2)]
    wanted = [Span(2, 5), Span(0, 3, by[0]), Span(0, 8), Span(0, 3), Span(1, 1, by[1]), Span(0, 8, by[0]), Span(0, 3)]
    wanted += [Span(3, 3, by[3]), Span(2, 2, by[2]), Span(5, 1), Span(4, 2), Span(3, 1), Span(5, 2, by[5])]
    found = span_maxima(Q, bases, wanted)
    assert found.dtype == dtype
    expected = [(Q @ span.rows(bases).T).max(axis=1) for span in wanted]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    assert np.array_equal(span_maxima(Q, bases, wanted, np.empty_like(found)), found)


def test_a_row_is_multiplied_once(monkeypatch):
    pool = np.eye(9, dtype=np.float32)
    bases = [Base(pool, np.array(places)) for places in ([8, 1], [1, 2, 8], [2])]
    shown = []

    def watch(places):
        assert {b: pool[[1, 2, 8]][at].argmax(axis=1).tolist() for b, at in places.items()} == {0: [8, 1], 2: [2]}
        return lambda start, products: shown.append((start, products.shape))

    span_maxima(pool, bases, [Span(2, 1), Span(0, 2)], watch=watch)
    assert shown == [(0, (3, 9))]


def test_what_is_not_a_number_stays_so():
    Q = np.array([[1.0, 1.0], [1.0, 0.0]], dtype=np.float32)
    bases = [Base(np.array([[1, 1], [np.inf, -np.inf], [5, 5]], dtype=np.float32))]
    found = span_maxima(Q, bases, [Span(0, 3), Span(0, 1), Span(0, 3, np.ones(3, np.float32))])
    np.testing.assert_array_equal(found, [[np.nan, np.nan], [2, 1], [np.nan, np.nan]])
