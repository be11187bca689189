"""Properties of the classifier for compositions of all discovered components: exact updates, consistent predictions."""

from itertools import product

import numpy as np
import pytest
from tests.contract.minimal import Closest, Corners, Halve

from imprint import ImprintClassifier, aggregators, generators, normalisers
from imprint.core.errors import ParameterError
from imprint.head import Head
from imprint.method import Method
from imprint.normalisers._base import POSITIONS

BUILTIN = {
    f: {n: f.load(n)() for n in f.builtin()}
    for f in (generators.family, normalisers.family, aggregators.family)
}
SMALL = [
    f"{n}(k=4)" if hasattr(g, "k") else n for n, g in BUILTIN[generators.family].items()
]
POINTS = [text for text in SMALL if generators.family.resolve(text).points]
DECIDERS = [
    f"{n}(m=2)" if hasattr(a, "m") else n
    for n, a in BUILTIN[aggregators.family].items()
]
PRES = [n for n, norm in BUILTIN[normalisers.family].items() if "pre" in norm.positions]
POSTS = [
    n for n, norm in BUILTIN[normalisers.family].items() if "post" in norm.positions
]


def case(pre, generator, post, aggregator):
    parts = dict(
        norm_pre=pre,
        generator=generator,
        norm_post=post,
        norm_inf=pre,
        aggregator=aggregator,
    )
    return pytest.param(
        parts, id=" / ".join(map(str, (pre, generator, post, aggregator)))
    )


OWN = case(Halve(), Corners(), Halve(), Closest())
LEARNT = [case(pre, g, post, "max") for pre, g, post in product(PRES, SMALL, POSTS)] + [
    OWN
]
"""The class states depend on these parts only; `DECIDE` below adds aggregators."""
ALONE = [
    m
    for m in LEARNT
    if not normalisers.family.resolve(m.values[0]["norm_post"]).uses_reference
]
PER_CLASS = [m for m in ALONE if Method.of(**m.values[0]).per_class]
DECIDE = [
    case("l2", g, "none", a)
    for g, a in product(SMALL, DECIDERS)
    if a != "kernel" or g in POINTS
]
DECIDE += [case("none", "mean", post, a) for post, a in product(POSTS, DECIDERS)] + [
    OWN
]


def data(dtype=np.float32, seed=3):
    """Five unequal classes with text labels, in mixed order, with a zero row and duplicates."""
    rng = np.random.default_rng(seed)
    sizes = dict(ant=9, bee=14, cow=6, dog=11, emu=3)
    y = np.repeat(list(sizes), list(sizes.values()))
    X = (
        rng.normal(size=(len(y), 6))
        + 2 * rng.normal(size=(5, 6))[np.unique(y, return_inverse=True)[1]]
    )
    X[0], X[12] = 0, X[11]
    mix = rng.permutation(len(y))
    return X[mix].astype(dtype), y[mix], rng.normal(size=(40, 6)).astype(dtype)


def same(a, b):
    """Assert that classes, proxies, states and scores of two models are bit-identical."""
    assert np.array_equal(a.classes_, b.classes_)
    assert a.proxies_.blocks == b.proxies_.blocks
    for one, other in zip(a.proxies_[:4], b.proxies_[:4], strict=True):
        assert one.dtype == other.dtype
        assert np.array_equal(one, other)
    states = [dict(zip(c.head_.labels, c.head_.states)) for c in (a, b)]
    for label in a.classes_.tolist():
        for one, other in zip(states[0][label], states[1][label]):
            assert one.keys() == other.keys()
            assert all(np.array_equal(one[key], other[key]) for key in one)
    Q = np.random.default_rng(0).normal(size=(9, a.n_features_in_)).astype(np.float32)
    assert np.array_equal(a.decision_function(Q), b.decision_function(Q))


@pytest.mark.parametrize("parts", ALONE)
def test_classes_may_come_in_any_order(parts):
    """Adding classes by partial_fit in any order equals one fit, bit for bit."""
    X, y, _ = data()
    whole = ImprintClassifier(**parts, random_state=7).fit(X, y)
    for order in (
        ["emu", "cow", "ant", "bee", "dog"],
        ["bee", "dog", "emu", "ant", "cow"],
    ):
        grown = ImprintClassifier(**parts, random_state=7)
        for label in order:
            grown.partial_fit(X[y == label], y[y == label])
        same(grown, whole)


@pytest.mark.parametrize("parts", LEARNT)
def test_classes_in_sorted_order_equal_one_fit(parts):
    """Also with quantile normalisation, whose reference is the classes imprinted before."""
    X, y, _ = data()
    whole = ImprintClassifier(**parts, random_state=7).fit(X, y)
    first = np.isin(y, ["ant", "bee"])
    grown = (
        ImprintClassifier(**parts, random_state=7)
        .partial_fit(X[first], y[first])
        .partial_fit(X[~first], y[~first])
    )
    same(grown, whole)


@pytest.mark.parametrize("parts", LEARNT)
def test_forget_equals_never_having_seen_the_class(parts):
    X, y, _ = data()
    whole = ImprintClassifier(**parts, random_state=7).fit(X, y)
    for gone in ("ant", "cow", "emu"):
        left = ImprintClassifier.of_head(whole.head_).forget(gone)
        never = ImprintClassifier(**parts, random_state=7).fit(
            X[y != gone], y[y != gone]
        )
        same(left, never)
        assert gone not in left.classes_
        assert gone in whole.classes_


@pytest.mark.parametrize("parts", PER_CLASS)
def test_other_classes_do_not_matter(parts):
    """Per-class generators: the proxies of a class are the same in every task that contains it."""
    X, y, _ = data()
    few = np.isin(y, ["bee", "dog"])
    a, b = (
        ImprintClassifier(**parts, random_state=7).fit(X[r], y[r])
        for r in (few, slice(None))
    )
    for label in ("bee", "dog"):
        of_a, of_b = (
            c.proxies_.weights[c.classes_[c.proxies_.labels] == label] for c in (a, b)
        )
        assert np.array_equal(of_a, of_b)


@pytest.mark.parametrize("parts", DECIDE)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_predictions_are_consistent(parts, dtype):
    X, y, Q = data(dtype)
    Xc, Qc = X.copy(), Q.copy()
    clf = ImprintClassifier(**parts, random_state=7).fit(X, y)
    S, P, labels = clf.decision_function(Q), clf.predict_proba(Q), clf.predict(Q)
    assert np.array_equal(X, Xc)
    assert np.array_equal(Q, Qc)
    assert clf.proxies_.weights.dtype == S.dtype == P.dtype == dtype
    np.testing.assert_allclose(P.sum(axis=1), 1, rtol=1e-5)
    assert np.array_equal(labels, clf.classes_[S.argmax(axis=1)])
    assert np.array_equal(labels, clf.classes_[P.argmax(axis=1)])
    assert clf.score(Q, labels) == 1
    assert np.isfinite(S).all()


@pytest.mark.parametrize("parts", [c for c in [*LEARNT, *DECIDE] if c is not OWN])
def test_saved_models_can_be_extended(parts, tmp_path):
    """A loaded model predicts identically and can be extended and forgotten like the one that was saved."""
    X, y, Q = data()
    early = y != "emu"
    clf = ImprintClassifier(**parts, random_state=7).fit(X[early], y[early])
    clf.save(tmp_path / "m.imprint")
    back = ImprintClassifier.load(tmp_path / "m.imprint")
    same(clf, back)
    assert back.classes_.dtype == clf.classes_.dtype
    for c in (clf, back):
        c.partial_fit(X[~early], y[~early]).partial_fit(Q[:5], ["bee"] * 5).forget(
            "cow"
        )
    same(clf, back)
    assert np.array_equal(clf.predict_proba(Q), back.predict_proba(Q))
    clf.save(tmp_path / "a")
    back.save(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def scores_of(clf, Q):
    S = clf.decision_function(Q)
    return S if S.ndim == 2 else S[:, None]


@pytest.mark.parametrize("aggregator", DECIDERS)
def test_updated_models_equal_models_fitted_from_scratch(aggregator, monkeypatch):
    """Add, forget, extend and re-add classes between predictions; predictions always equal those of a new model."""
    monkeypatch.setattr(
        "imprint.gaussian_process.scale.MAX_RESOLVED_PROXIES", 5
    )  # so that small systems are updated, not solved again
    X, y, Q = data(np.float64)
    parts = dict(generator="kmeans(k=4)", aggregator=aggregator, random_state=7)
    clf, rows = ImprintClassifier(**parts).fit(X[y < "cow"], y[y < "cow"]), {}
    for label in ("ant", "bee"):
        rows[label] = [X[y == label]]
    steps = [
        ("add", "cow"),
        ("add", "dog"),
        ("forget", "ant"),
        ("add", "emu"),
        ("grow", "bee"),
        ("forget", "dog"),
    ]
    for look, (step, label) in zip(
        (1, 0, 1, 1, 0, 1, 1, 0, 1),
        [*steps, ("add", "ant"), ("grow", "ant"), ("add", "dog")],
    ):
        if step == "forget":
            clf.forget(label)
            del rows[label]
        else:
            new = X[y == label] if step == "add" else Q[:4]
            clf.partial_fit(new, [label] * len(new))
            rows.setdefault(label, []).append(new)
        if look:
            fresh = ImprintClassifier(**parts)
            for k, parts_of in rows.items():
                for part in parts_of:
                    fresh.partial_fit(part, [k] * len(part))
            np.testing.assert_allclose(
                scores_of(clf, Q), scores_of(fresh, Q), rtol=1e-6, atol=1e-8
            )
            assert np.array_equal(clf.predict(Q), fresh.predict(Q))


def test_a_head_is_immutable():
    """A head is immutable: heads derived from it later do not change it."""
    X, y, Q = data()
    method = Method.of(
        norm_pre="l2",
        generator="kmeans(k=3)",
        norm_post="none",
        norm_inf="l2",
        aggregator="kernel",
    )
    first = Head(method, 0, X.dtype).learn(X[y < "cow"], y[y < "cow"])
    before = first.scores(Q)
    later = [
        first.learn(X[y == "cow"], y[y == "cow"]),
        first.learn(X[y == "dog"], y[y == "dog"]),
    ]
    later += [
        first.forget("ant"),
        first.learn(Q, np.full(len(Q), "bee")),
        later[0].learn(X[y == "emu"], y[y == "emu"]),
    ]
    known = [h.classes.tolist() for h in later]
    assert known == [
        ["ant", "bee", "cow"],
        ["ant", "bee", "dog"],
        ["bee"],
        ["ant", "bee"],
        ["ant", "bee", "cow", "emu"],
    ]
    assert "dog" not in later[0]
    assert "cow" not in first
    assert first.classes.tolist() == list(first.labels) == ["ant", "bee"]
    assert np.array_equal(first.scores(Q), before)
    unread = Head(method, 0, X.dtype).learn(X[y < "cow"], y[y < "cow"])
    unread.learn(X[y == "cow"], y[y == "cow"])
    assert np.array_equal(unread.scores(Q), before)


@pytest.mark.parametrize("position", POSITIONS)
def test_normalisers_are_refused_where_they_do_not_fit(position):
    X, y, _ = data()
    for name, norm in BUILTIN[normalisers.family].items():
        parts = dict(
            norm_pre="l2",
            norm_post="l2",
            norm_inf="l2",
            generator="mean",
            aggregator="max",
        )
        parts[f"norm_{position}"] = name
        if position in norm.positions:
            assert (
                ImprintClassifier(**parts).fit(X, y).classes_.tolist()
                == np.unique(y).tolist()
            )
        else:
            says = rf"^norm_{position}='{name}': {name} works only as norm_.*; norm_{position} takes .*\.$"
            with pytest.raises(ValueError, match=says):
                ImprintClassifier(**parts).fit(X, y)


def test_aggregators_that_need_points_are_refused_where_there_are_none():
    X, y, _ = data()
    pairs = [(g, a) for g in SMALL for a in DECIDERS]
    clash = [
        (g, a)
        for g, a in pairs
        if aggregators.family.resolve(a).needs_points and g not in POINTS
    ]
    assert clash
    for g, a in clash:
        with pytest.raises(
            ParameterError,
            match=r"decides by distances, but these proxies are directions, not points",
        ):
            ImprintClassifier(generator=g, aggregator=a).fit(X, y)


@pytest.mark.parametrize("classes", [200, 256, 257, 300])
def test_more_than_256_classes(classes):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2 * classes, 12)), np.tile(np.arange(classes), 2)
    method = Method.of(
        norm_pre="none",
        generator="all",
        norm_post="none",
        norm_inf="none",
        aggregator="nearest(m=1)",
    )
    head = Head(method, 0, X.dtype).learn(X, y)
    assert np.array_equal(head.classes[head.winners(X)], y)


def test_the_scale_of_max_is_that_of_normalised_queries():
    """`max` scales scores by the mean length of rows normalised with `norm_inf`, not with `norm_pre`."""
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(60, 5)) + 4, np.arange(60) % 3
    for pre, inf in (("l2", "none"), ("none", "l2"), ("l2", "l2"), ("none", "none")):
        method = Method.of(
            norm_pre=pre,
            generator="mean",
            norm_post="none",
            norm_inf=inf,
            aggregator="max",
        )
        head = Head(method, 0, X.dtype).learn(X, y)
        lengths = np.linalg.norm(X, axis=1).mean() if inf == "none" else 1
        longest = np.linalg.norm(head.proxies.weights, axis=1).max()
        assert head.prepared.scale == pytest.approx(lengths * longest)
