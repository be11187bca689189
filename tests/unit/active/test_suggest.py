"""Which rows of a pool to label next."""

import numpy as np
import pytest

from imprint import ImprintClassifier, Imprinter
from imprint.active import suggest
from imprint.active.suggestions import NOISE, PreparedPool
from imprint.core.errors import ParameterError

PARTS = ("cat", "dog", "emu")


def blobs(n=300, d=8, seed=0):
    """Three classes around three axes."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    X = rng.normal(scale=0.25, size=(n, d)) + 1.5 * np.eye(d)[y]
    return X.astype(np.float32), np.array(PARTS)[y]


def reference(X, n, labelled=(), weights=None, noise=0.1):
    """The query strategy by its formula: a dense covariance that is updated at every step."""
    X = X / np.linalg.norm(X, axis=1, keepdims=True)
    scale = 2 * ((X * X).sum(1).mean() - (X.mean(0) ** 2).sum())
    V = np.exp(-np.square(X[:, None] - X).sum(2) / scale)
    labelled = list(labelled)
    if labelled:
        V = V - V[:, labelled] @ np.linalg.solve(
            V[np.ix_(labelled, labelled)] + noise * np.eye(len(labelled)), V[labelled]
        )
    w = np.ones(len(X)) if weights is None else weights
    chosen = []
    for _ in range(n):
        gain = (w[:, None] * V * V).sum(0) / (V.diagonal() + noise)
        gain[chosen + labelled] = -np.inf
        best = int(gain.argmax())
        chosen.append(best)
        V = V - np.outer(V[:, best], V[best]) / (V[best, best] + noise)
    return chosen


def test_without_a_model_it_follows_the_formula():
    X, _ = blobs()
    assert suggest(X.astype(np.float64), 12).tolist() == reference(
        X.astype(np.float64), 12
    )


def test_with_a_model_it_conditions_on_the_labels_and_weights_by_the_margin():
    X, y = blobs(seed=1)
    labelled = [0, 1, 2, 3, 4]
    clf = ImprintClassifier(generator="all", random_state=0).fit(
        X[labelled], y[labelled]
    )
    P = np.sort(clf.predict_proba(X), axis=1)
    weights = (1 - (P[:, -1] - P[:, -2])) ** 2
    chosen = clf.suggest(X, 6)
    assert not set(labelled) & set(chosen.tolist())
    assert chosen.tolist() == reference(X.astype(np.float64), 6, labelled, weights)


def test_three_suggestions_find_three_classes_without_any_label():
    X, y = blobs(seed=2)
    assert sorted(y[suggest(X, 3)]) == list(PARTS)


def test_no_duplicate_of_a_chosen_or_labelled_row_is_chosen():
    X, y = blobs(60)
    pool = np.repeat(X, 5, axis=0) + np.float32(1e-7)
    chosen = suggest(pool, 60)
    assert len({i // 5 for i in chosen.tolist()}) == len(chosen)
    clf = ImprintClassifier(generator="all").fit(X[:30], y[:30])
    assert min(clf.suggest(pool, 20)) >= 30 * 5
    assert suggest(np.ones((50, 3)), 10).tolist() == [0]


@pytest.mark.parametrize("generator", ["all", "kmeans(k=20)", "kmedoids(k=20)"])
def test_no_duplicate_of_a_row_that_was_labelled_several_times_is_chosen(generator):
    X, y = blobs(30)
    model = ImprintClassifier(generator=generator).fit(
        np.repeat(X, 3, axis=0), np.repeat(y, 3)
    )
    new = -np.eye(8, dtype=np.float32)[:4]
    assert sorted(model.suggest(np.concatenate([X, new]), n=10).tolist()) == [
        30,
        31,
        32,
        33,
    ]


def test_reasons_name_two_classes_or_distance():
    X, y = blobs()
    clf = ImprintClassifier().fit(X[:90], y[:90])
    between = X[0] / np.linalg.norm(X[0]) + X[1] / np.linalg.norm(X[1])
    pool = np.vstack([X[90:], between[None], -np.ones((1, 8), np.float32)]).astype(
        np.float32
    )
    reasons = dict(
        zip(clf.suggest(pool, len(pool)).tolist(), clf.suggest(pool, len(pool)).reasons)
    )
    assert reasons[len(pool) - 1] == "far from what is known"
    assert set(reasons.values()) <= {"far from what is known"} | {
        f"between {a} and {b}" for a in PARTS for b in PARTS
    }
    assert any(reason.startswith("between") for reason in reasons.values())
    assert suggest(X, 2).reasons == ("nothing like it is labelled yet",) * 2


@pytest.mark.parametrize(
    "parts",
    [
        {"generator": "least_squares", "aggregator": "max"},
        {"aggregator": "nearest(m=3)"},
    ],
)
@pytest.mark.parametrize("calibrate", [False, True])
def test_every_method_can_suggest(parts, calibrate):
    X, y = blobs()
    clf = ImprintClassifier(**parts, calibrate=calibrate).fit(X[:30], y[:30])
    assert len(set(clf.suggest(X[30:], 15).tolist())) == 15


def test_one_class_and_one_row():
    X, _ = blobs(20)
    clf = ImprintClassifier().fit(X[:1], ["cat"])
    assert clf.suggest(X[1:], 3).reasons == ("far from what is known",) * 3
    assert suggest(X[:1], 3).tolist() == [0]


def test_a_large_pool_is_sampled(monkeypatch):
    X, y = blobs(600)
    monkeypatch.setattr("imprint.active.suggestions.TARGETS", 100)
    monkeypatch.setattr("imprint.active.suggestions.CANDIDATES", 200)
    first, again = suggest(X, 20), suggest(X, 20)
    assert first.tolist() == again.tolist()
    assert len(set(first.tolist())) == 20
    assert max(first) > 200
    assert sorted(y[suggest(X, 3)]) == list(PARTS)


def test_targets_and_candidates_may_differ(monkeypatch):
    """The sums over targets are exact, including candidates that are not targets."""
    monkeypatch.setattr("imprint.active.suggestions.TARGETS", 30)
    pool = PreparedPool(blobs(80)[0])
    X = pool.unit.astype(np.float64)
    explained = pool.explained(pool.unit[:4], np.full(4, 0.1))
    K = np.exp(-pool.rate * np.square(X[:, None] - X).sum(2))
    V = K - K[:, :4] @ np.linalg.solve(K[:4, :4] + 0.1 * np.eye(4), K[:4])
    chosen = pool.select(8, np.arange(1.0, 31), np.ones(80, bool), explained)
    expected = []
    for _ in range(8):
        gain = (np.arange(1.0, 31)[:, None] * V[:30] ** 2).sum(0) / (
            V.diagonal() + NOISE
        )
        gain[expected] = -np.inf
        best = int(gain.argmax())
        expected.append(best)
        V = V - np.outer(V[:, best], V[best]) / (V[best, best] + NOISE)
    assert chosen == expected


def test_unreadable_items_are_named_and_numbers_are_those_of_the_items(tmp_path):
    rng = np.random.default_rng(0)
    images = [rng.integers(0, 255, (8, 8), dtype=np.uint8) for _ in range(6)]
    model = Imprinter(backbone="raw").fit((images[:2], ["a", "b"]))
    (tmp_path / "broken.png").write_bytes(b"no image")
    items = [str(tmp_path / "broken.png"), *images[2:]]
    suggestions = model.suggest(items, 4)
    assert sorted(suggestions.tolist()) == [1, 2, 3, 4]
    assert [s.name for s in suggestions.unreadable] == [items[0]]
    looked = model.look(items)
    assert sorted(model.suggest(looked, 4).tolist()) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("call", "rule"),
    [
        (lambda X: suggest(X, 0), "suggest(n=0): n must be int >= 1."),
        (lambda X: suggest(X, True), "suggest(n=True): n must be int >= 1."),
        (lambda X: suggest(X[0]), "rows of numbers (n, d)"),
        (lambda X: suggest(np.array([["a"]])), "rows of numbers (n, d)"),
        (lambda X: suggest(X[:0]), "rows of numbers (n, d)"),
        (lambda X: suggest(np.vstack([X[:2], X[:1] * np.nan])), "row 2 is not"),
        (
            lambda X: ImprintClassifier().fit(X[:2], [0, 1]).suggest(X[:, :3]),
            "suggest(X_pool): ",
        ),
    ],
)
def test_wrong_calls_are_refused(call, rule):
    with pytest.raises(ParameterError) as error:
        call(blobs(10)[0])
    assert rule in str(error.value)


def test_the_only_row_of_a_pool_is_suggested_also_next_to_a_model():
    X, y = blobs(20)
    clf = ImprintClassifier().fit(X[:10], y[:10])
    assert clf.suggest(X[15:16], 3).tolist() == [0]
    assert clf.suggest(X[:1], 3).tolist() == [], "a copy of a labelled row"
