"""Extreme rows: every prediction equals that in long double arithmetic, or the rows are refused in one sentence."""

import numpy as np
import pytest

from imprint.aggregators.kernel import class_weights
from imprint.core.errors import ParameterError
from imprint.head import Head
from imprint.method import Method

LONG = np.longdouble
SCALES = {
    "float32": (1e-30, 1e-12, 1.0, 1e7, 1e19),
    "float64": (1e-200, 1e-30, 1.0, 1e19, 1e150),
}
SHAPES = ("plain", "offset", "column", "outlier")
AGGREGATORS = (
    "max",
    "nearest(m=1)",
    "nearest(m=3)",
    "nearest(m=3, metric='manhattan')",
    "kernel",
)


def rows(rng, shape, scale, dtype, width=6):
    """Rows of three classes with extreme values, and queries."""
    y = np.repeat([0, 1, 2], [20, 20, 6])
    centres = 3 * rng.normal(size=(3, width))
    X, Q = (
        centres[y] + rng.normal(size=(46, width)),
        centres[rng.integers(3, size=40)] + rng.normal(size=(40, width)),
    )
    if shape == "offset":
        X, Q = X + 1e7, Q + 1e7
    elif shape == "column":
        X[:, 0] = Q[:, 0] = 1e18
    elif shape == "outlier":
        X[5] *= 1e6
    with np.errstate(over="ignore", under="ignore"):
        return (X * scale).astype(dtype), y, (Q * scale).astype(dtype)


def reference(head, X, y, Q):
    """Scores in long double from the proxies of the head."""
    W, labels = head.proxies.weights.astype(LONG), head.proxies.labels
    Q, text = Q.astype(LONG), str(head.method.aggregator)
    if text.startswith("max"):
        return np.stack([(Q @ W[labels == c].T).max(axis=1) for c in range(3)], axis=1)
    apart = Q[:, None] - W
    if text.startswith("nearest"):
        metric, m = head.method.aggregator.metric, head.method.aggregator.m
        distances = (
            np.abs(apart).sum(axis=2)
            if metric == "manhattan"
            else np.sqrt((apart**2).sum(axis=2))
        )
        order = np.argsort(distances, axis=1, kind="stable")[:, :m]
        votes = 1 / (np.take_along_axis(distances, order, axis=1) + LONG(1e-10))
        return np.stack(
            [(votes * (labels[order] == c)).sum(axis=1) for c in range(3)], axis=1
        )
    X = X.astype(LONG)
    s = 2 * ((X - X.mean(axis=0)) ** 2).sum(axis=1).mean()
    among = np.exp(-((W[:, None] - W) ** 2).sum(axis=2) / s).astype(float)
    noise = 0.1 / head.proxies.mass + 0.2 * (head.proxies.spread / float(s))
    A = np.linalg.solve(among + np.diag(noise), np.eye(3)[labels])
    return np.exp(-(apart**2).sum(axis=2) / s) @ A * class_weights(head.proxies, 0.35)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("aggregator", AGGREGATORS)
def test_no_wrong_class(aggregator, dtype):
    """Up to 40 queries for each of 5 scales, 4 shapes and 2 generators; rows that are refused are skipped."""
    rng, answered = np.random.default_rng(0), 0
    for scale in SCALES[dtype]:
        for shape in SHAPES:
            X, y, Q = rows(rng, shape, scale, dtype)
            for generator in ("all", "mean"):
                if (
                    generator == "mean"
                    and aggregator.startswith("nearest(m=3")
                    and shape == "outlier"
                ):
                    continue
                method = dict(
                    norm_pre="none",
                    generator=generator,
                    norm_post="none",
                    norm_inf="none",
                )
                try:
                    head = Head(
                        Method.of(**method, aggregator=aggregator), 0, dtype
                    ).learn(X, y)
                    winners = head.winners(Q)
                except ParameterError:
                    continue
                S = reference(head, X, y, Q)
                best = S.max(axis=1)
                gap = best - S[np.arange(len(Q)), winners]
                eps = 2e-5 if dtype == "float32" else 1e-9
                wrong = gap > eps * np.abs(S).max(axis=1)
                assert not wrong.any(), (
                    aggregator,
                    dtype,
                    scale,
                    shape,
                    generator,
                    np.flatnonzero(wrong),
                )
                answered += len(Q)
    assert answered >= 400


def test_a_query_of_another_width_is_refused():
    X, y, _ = rows(np.random.default_rng(0), "plain", 1.0, "float32")
    for aggregator in AGGREGATORS:
        method = Method.of(
            norm_pre="none",
            generator="all",
            norm_post="none",
            norm_inf="none",
            aggregator=aggregator,
        )
        head = Head(method, 0, "float32").learn(X, y)
        for width in (1, 5, 7):
            with pytest.raises(
                ParameterError,
                match=f"X has {width} columns; the model was fitted on 6",
            ):
                head.scores(np.ones((3, width), dtype=np.float32))


def test_max_refuses_scores_that_underflow():
    X, y, Q = rows(np.random.default_rng(0), "plain", 1e-30, "float32")
    method = Method.of(
        norm_pre="none",
        generator="all",
        norm_post="none",
        norm_inf="none",
        aggregator="max",
    )
    head = Head(method, 0, "float32").learn(X, y)
    with pytest.raises(
        ParameterError, match=r"^max: the scores underflow float32; scale the rows up"
    ):
        head.winners(Q)
    assert head.winners(np.zeros((2, 6), dtype=np.float32)).tolist() == [
        0,
        0,
    ]  # zero scores are exact


def test_doubt_of_nearest_is_between_0_and_1():
    X, y, Q = rows(np.random.default_rng(0), "plain", 1.0, "float64")
    for metric in ("euclidean", "cosine", "manhattan"):
        parts = dict(
            norm_pre="none", generator="all", norm_post="none", norm_inf="none"
        )
        head = Head(
            Method.of(**parts, aggregator=f"nearest(m=1, metric='{metric}')"),
            0,
            "float64",
        ).learn(X, y)
        doubt = head.doubt(np.concatenate([X[:3], Q, 1e6 * Q]))
        assert (doubt[:3] < 1e-7).all()
        assert ((doubt >= 0) & (doubt <= 1)).all()
        assert metric == "cosine" or (doubt[-40:] > 0.99).all()
