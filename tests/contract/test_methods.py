"""The properties that make the classifier trustworthy, over every composition of discovered components."""

from itertools import product

import numpy as np
import pytest

from imprint import ImprintClassifier, aggregators, generators, normalisers
from imprint.method import Method
from imprint.normalisers._base import POSITIONS

GENERATORS = generators.family.names()
SMALL = {g: f"{g}(k=4)" if hasattr(generators.family.load(g)(), "k") else g for g in GENERATORS}
AGGREGATORS = [f"{a}(m=2)" if hasattr(aggregators.family.load(a)(), "m") else a for a in aggregators.family.names()]
POSTS = [n for n in normalisers.family.names() if "post" in normalisers.family.load(n).positions]
PRES = [n for n in normalisers.family.names() if "pre" in normalisers.family.load(n).positions]
METHODS = [
    pytest.param(
        dict(norm_pre=pre, generator=SMALL[g], norm_post=post, norm_inf=pre, aggregator=a), id=f"{pre}-{g}-{post}-{a}"
    )
    for pre, g, post, a in product(PRES, GENERATORS, POSTS, AGGREGATORS)
]
WITHOUT_REFERENCE = [m for m in METHODS if not normalisers.family.resolve(m.values[0]["norm_post"]).uses_reference]


def data(dtype=np.float32, seed=3):
    """Five unequal classes with text labels, in mixed order, with a zero row and duplicates."""
    rng = np.random.default_rng(seed)
    sizes = dict(ant=9, bee=14, cow=6, dog=11, emu=3)
    y = np.repeat(list(sizes), list(sizes.values()))
    X = rng.normal(size=(len(y), 6)) + 2 * rng.normal(size=(5, 6))[np.unique(y, return_inverse=True)[1]]
    X[0], X[12] = 0, X[11]
    mix = rng.permutation(len(y))
    return X[mix].astype(dtype), y[mix], rng.normal(size=(40, 6)).astype(dtype)


def same(a, b):
    assert np.array_equal(a.classes_, b.classes_)
    assert np.array_equal(a.proxies_.labels, b.proxies_.labels)
    assert a.proxies_.weights.dtype == b.proxies_.weights.dtype
    assert np.array_equal(a.proxies_.weights, b.proxies_.weights)
    for label in a.classes_:
        one, other = a._memory.states[str(label)], b._memory.states[str(label)]
        assert one.keys() == other.keys()
        assert all(np.array_equal(one[key], other[key]) for key in one)


@pytest.mark.parametrize("parts", WITHOUT_REFERENCE)
def test_classes_may_come_in_any_order(parts):
    """New classes by partial_fit, whatever the order, equal one fit, bit for bit."""
    X, y, _ = data()
    whole = ImprintClassifier(**parts, random_state=7).fit(X, y)
    for order in (["emu", "cow", "ant", "bee", "dog"], ["bee", "dog", "emu", "ant", "cow"]):
        grown = ImprintClassifier(**parts, random_state=7)
        for label in order:
            grown.partial_fit(X[y == label], y[y == label])
        same(grown, whole)


@pytest.mark.parametrize("parts", METHODS)
def test_classes_in_sorted_order_equal_one_fit(parts):
    """Also with quantile: the reference is what was imprinted before."""
    X, y, _ = data()
    whole = ImprintClassifier(**parts, random_state=7).fit(X, y)
    first = np.isin(y, ["ant", "bee"])
    grown = ImprintClassifier(**parts, random_state=7).partial_fit(X[first], y[first]).partial_fit(X[~first], y[~first])
    same(grown, whole)


@pytest.mark.parametrize("parts", METHODS)
@pytest.mark.parametrize("gone", ["ant", "cow", "emu"])
def test_forget_is_never_having_seen(parts, gone):
    X, y, _ = data()
    left = ImprintClassifier(**parts, random_state=7).fit(X, y).forget(gone)
    never = ImprintClassifier(**parts, random_state=7).fit(X[y != gone], y[y != gone])
    same(left, never)
    assert gone not in left.classes_


@pytest.mark.parametrize("parts", METHODS)
def test_other_classes_do_not_matter(parts):
    """Per-class generators: the proxies of a class are the same in every task that contains it."""
    method = Method.of(**parts)
    if not method.per_class:
        return
    X, y, _ = data()
    few = np.isin(y, ["bee", "dog"])
    a, b = (ImprintClassifier(**parts, random_state=7).fit(X[r], y[r]) for r in (few, slice(None)))
    for label in ("bee", "dog"):
        of_a, of_b = (c.proxies_.weights[c.classes_[c.proxies_.labels] == label] for c in (a, b))
        assert np.array_equal(of_a, of_b)


@pytest.mark.parametrize("parts", METHODS)
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


@pytest.mark.parametrize("parts", METHODS)
def test_saved_models_go_on(parts, tmp_path):
    """A loaded model predicts identically and can be extended and forgotten like the one that was saved."""
    X, y, Q = data()
    early = y != "emu"
    clf = ImprintClassifier(**parts, random_state=7).fit(X[early], y[early])
    clf.save(tmp_path / "m.imprint")
    back = ImprintClassifier.load(tmp_path / "m.imprint")
    same(clf, back)
    assert back.classes_.dtype == clf.classes_.dtype
    assert np.array_equal(clf.decision_function(Q), back.decision_function(Q))
    for c in (clf, back):
        c.partial_fit(X[~early], y[~early]).partial_fit(Q[:5], ["bee"] * 5).forget("cow")
    same(clf, back)
    assert np.array_equal(clf.predict_proba(Q), back.predict_proba(Q))


@pytest.mark.parametrize("position", POSITIONS)
def test_normalisers_are_refused_where_they_do_not_fit(position):
    for name in normalisers.family.names():
        parts = dict(norm_pre="l2", norm_post="l2", norm_inf="l2", generator="mean", aggregator="max")
        parts[f"norm_{position}"] = name
        X, y, _ = data()
        if position in normalisers.family.load(name).positions:
            ImprintClassifier(**parts).fit(X, y)
        else:
            says = rf"^norm_{position}='{name}': {name} works only as norm_.*; norm_{position} takes .*\.$"
            with pytest.raises(ValueError, match=says):
                ImprintClassifier(**parts).fit(X, y)
