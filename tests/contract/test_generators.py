"""The contract that every generator must fulfil."""

import numpy as np
import pytest
from tests.contract.found import GENERATORS

from imprint import generators
from imprint.core.layout import to_arrays, to_states
from imprint.generators._base import PerClassGenerator

EXACT = ("all", "mean", "random", "least_squares")  # as documented for `partial_fit`


def classes_of(awkward, dtype):
    X, y = awkward
    return [X[y == c].astype(dtype) for c in np.unique(y)]


def fresh(seed=5):
    return np.random.default_rng(seed)


@pytest.mark.parametrize("g", GENERATORS, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_generator_keeps_inputs_and_repeats(g, dtype, awkward):
    parts = classes_of(awkward, dtype)
    before = [part.copy() for part in parts]
    one, two = ([g.summarise(X, fresh()) for X in parts] for _ in range(2))
    together = g.summarise_all(parts, [fresh() for _ in parts])
    for a, b, c in zip(one, two, together, strict=True):
        assert a.keys() == b.keys() == c.keys()
        for name in a:
            assert isinstance(a[name], np.ndarray)
            assert np.isfinite(a[name]).all()
            assert np.array_equal(a[name], b[name])
            assert np.array_equal(a[name], c[name])
            assert a[name].dtype == c[name].dtype
    proxies = g.proxies(one)
    assert all(
        np.array_equal(p, q) for p, q in zip(proxies, g.proxies(two), strict=True)
    )
    assert all(
        np.isfinite(p).all() and p.shape[1:] == X.shape[1:] and len(p) >= 1
        for p, X in zip(proxies, parts)
    )
    assert all(np.array_equal(a, b) for a, b in zip(parts, before))


@pytest.mark.parametrize("g", [g for g in GENERATORS if hasattr(g, "k")], ids=str)
def test_k_is_an_upper_bound(g, awkward):
    for k in (1, 3, 1000):
        bounded = generators.family.changed(g, {"k": k})
        parts = classes_of(awkward, np.float32)
        for X, part in zip(
            parts, bounded.proxies([bounded.summarise(X, fresh()) for X in parts])
        ):
            assert 1 <= len(part) <= min(k, len(X))
            if g == type(g)():
                assert len(part) >= min(k, len(np.unique(X, axis=0)))


@pytest.mark.parametrize("g", GENERATORS, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_state_has_the_declared_layout(g, dtype, awkward):
    """Also after adding one row or many rows. Without a layout, values must only be finite."""
    parts = classes_of(awkward, dtype)
    states = [g.summarise(X, fresh()) for X in parts]
    states += [g.extend(s, X[:1], fresh()) for s, X in zip(states, parts)]
    states += [
        g.extend(s, np.concatenate([X] * 4), fresh()) for s, X in zip(states[3:], parts)
    ]
    arrays, shape = to_arrays("state", states), (g.layout, len(states), 7)
    names = {name for state in to_states(arrays, "state", *shape) for name in state}
    if g.layout is not None:
        one_more = {
            **arrays,
            **{
                f"state/more/{end}": arrays[f"state/{min(names)}/{end}"]
                for end in ("values", "shapes")
            },
        }
        one_less = [
            {k: v for k, v in arrays.items() if not k.startswith(f"state/{name}/")}
            for name in names
        ]
        for other in (one_more, *one_less):
            with pytest.raises((KeyError, ValueError)):
                to_states(other, "state", *shape)


@pytest.mark.parametrize("g", GENERATORS, ids=str)
def test_extending_keeps_the_old_state_and_is_exact_where_documented(g, awkward):
    X = awkward[0][:29].astype(np.float64)
    whole, first = g.summarise(X, fresh()), g.summarise(X[:11], fresh())
    before = {k: v.copy() for k, v in first.items()}
    more, again = (g.extend(first, X[11:], fresh()) for _ in range(2))
    assert all(np.array_equal(before[k], first[k]) for k in before)
    assert all(np.array_equal(more[k], again[k]) for k in more)
    (P,), (W,) = g.proxies([more]), g.proxies([whole])
    assert np.isfinite(P).all()
    if str(g).partition("(")[0] in EXACT:
        assert more.keys() == whole.keys()
        for name in whole:
            np.testing.assert_allclose(more[name], whole[name], rtol=1e-9)
        np.testing.assert_allclose(P, W, rtol=1e-6)


@pytest.mark.parametrize("g", GENERATORS, ids=str)
def test_proxies_declared_as_points_are_points(g, awkward):
    """A proxy that is a point lies in the bounding box of its rows and moves with them."""
    X = awkward[0][1:29].astype(np.float64)
    if g.points:
        (P,), (shifted,) = (
            g.proxies([g.summarise(rows, fresh())]) for rows in (X, X + 100)
        )
        assert (X.min(axis=0) - 1e-9 <= P).all()
        assert (X.max(axis=0) + 1e-9 >= P).all()
        if not isinstance(g, PerClassGenerator) or "mass" in g.summarise(X, fresh()):
            np.testing.assert_allclose(shifted, P + 100, atol=1e-8)
    else:
        box = [
            np.abs(p).max()
            for p in g.proxies([g.summarise(rows, fresh()) for rows in (X, X + 100)])
        ]
        assert box[1] < 100, "proxies that move with the rows are points"


@pytest.mark.parametrize("g", GENERATORS, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_mass_and_spread_are_those_of_the_nearest_rows(g, dtype, awkward):
    """Compared with assigning every row to its nearest proxy, one by one."""
    for X in classes_of(awkward, dtype):
        state = g.summarise(X, fresh())
        (P,) = g.proxies([state])
        mass, spread = (
            state.get("mass", np.ones(len(P))),
            state.get("spread", np.zeros(len(P))),
        )
        assert mass.shape == spread.shape == (len(P),)
        if "mass" in state:
            assert mass.sum() == pytest.approx(len(X))
            grown = g.extend(state, np.concatenate([X, X]), fresh())
            assert grown["mass"].sum() == pytest.approx(3 * len(X))
        if "spread" in state:
            apart = np.array(
                [[((x - p) ** 2).sum() for p in P] for x in X.astype(np.float64)]
            )
            nearest = apart.argmin(axis=1)
            assert np.array_equal(mass, np.bincount(nearest, minlength=len(P)))
            expected = [apart[nearest == j, j].mean() for j in range(len(P))]
            np.testing.assert_allclose(spread, expected, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize(
    "g", [g for g in GENERATORS if isinstance(g, PerClassGenerator)], ids=str
)
def test_a_per_class_generator_does_not_depend_on_other_classes(g, awkward):
    states = [g.summarise(X, fresh()) for X in classes_of(awkward, np.float32)]
    alone, together = [g.proxies([s])[0] for s in states], g.proxies(states)
    assert all(np.array_equal(a, b) for a, b in zip(alone, together, strict=True))
