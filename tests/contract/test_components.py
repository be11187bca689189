"""One contract, every component: nothing here names a component by hand."""

import pickle
import re
from dataclasses import fields, replace

import numpy as np
import pytest

from imprint import aggregators, generators, normalisers
from imprint.core.component import Component, rule
from imprint.core.errors import ParameterError
from imprint.core.types import Proxies
from imprint.generators._base import Picker, Request

FAMILIES = [generators.family, normalisers.family, aggregators.family]
ALL = [pytest.param(f, n, id=f"{f.kind}:{n}") for f in FAMILIES for n in f.names()]
PARAMETERS = [
    pytest.param(f.load(n), p, id=f"{f.kind}:{n}.{p.name}")
    for f in FAMILIES
    for n in f.names()
    for p in fields(f.load(n))
]


class Huge(int):
    """A whole number beyond every float."""

    def __str__(self):
        return "huge"


HUGE = Huge(10**400)


def other_value(p):
    """Some legal value that is not the default."""
    if p.metadata["choices"]:
        return next(c for c in p.metadata["choices"] if c != p.default)
    return p.default * 2


@pytest.mark.parametrize(("family", "name"), ALL)
def test_is_a_value(family, name):
    a = family.load(name)()
    assert a == family.load(name)()
    assert hash(a) == hash(family.load(name)())
    assert pickle.loads(pickle.dumps(a)) == a == family.resolve(str(a)) == family.resolve(a)
    with pytest.raises(AttributeError):
        a.k = 3


@pytest.mark.parametrize(("family", "name"), ALL)
def test_is_final_and_documented(family, name):
    cls = family.load(name)
    assert cls.__subclasses__() == []
    assert cls.__doc__
    assert "(" not in cls.__doc__.split("\n")[0][:12], "the dataclass made this docstring, no person did"
    assert all(p.metadata["doc"] for p in fields(cls))


@pytest.mark.parametrize(("cls", "p"), PARAMETERS)
def test_text_carries_every_parameter(cls, p):
    family = next(f for f in FAMILIES if issubclass(cls, f.base))
    changed = cls(**{p.name: other_value(p)})
    assert f"{p.name}={other_value(p)!r}" in str(changed)
    assert family.resolve(str(changed)) == changed != cls()


@pytest.mark.parametrize(("cls", "p"), PARAMETERS)
@pytest.mark.parametrize("bad", ["nope", -1, None, True, float("nan"), float("inf"), [], HUGE], ids=str)
def test_refuses_bad_values_in_one_sentence(cls, p, bad):
    sentence = rf"^{cls.__name__}\({p.name}=.*\): {p.name} must be {re.escape(rule(p))}\.$"
    if isinstance(p.default, int) and bad is HUGE:
        assert getattr(cls(**{p.name: bad}), p.name) == bad  # a whole number is a whole number
        return
    with pytest.raises(ParameterError, match=sentence):
        cls(**{p.name: bad})


@pytest.mark.parametrize(("cls", "p"), PARAMETERS)
def test_numpy_scalars_become_plain_values(cls, p):
    if not isinstance(p.default, str):
        value = getattr(cls(**{p.name: np.asarray(p.default)[()]}), p.name)
        assert type(value) is type(p.default)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.kind)
@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("nosuchthing", r"^Unknown \w+ 'nosuchthing'\. Known: .*\.$"),
        ("{name}(q=1)", r"has no parameter 'q'\. It takes: .*\.$"),
        ("{name}(k=", r"^Cannot read"),
        ("{name}(20)", r"^Cannot read"),
        ("{name}(**{{}})", r"(^Cannot read|has no parameter)"),
        ("{name}(k=f())", r"^Cannot read"),
        ("a.b(k=1)", r"^Cannot read"),
        ("", r"^Cannot read"),
        (3, r"^Cannot read 3 as"),
        (None, r"^Cannot read None as"),
        ("__import__('os')", r"^Cannot read"),
        ("(" * 10_000, r"^Cannot read .{60,70}\.\.\."),
        ("x" * 150, r"^Unknown"),
    ],
)
def test_bad_texts_get_one_sentence(family, spec, says):
    text = spec.format(name=family.names()[0]) if isinstance(spec, str) else spec
    with pytest.raises(ParameterError, match=says) as e:
        family.resolve(text)
    assert "\n" not in str(e.value)


def test_near_misses_are_suggested():
    with pytest.raises(ParameterError, match=r"Unknown generator 'kmean'. Did you mean 'kmeans'\? Known: all, "):
        generators.family.resolve("kmean")


# Generators


@pytest.mark.parametrize("name", generators.family.names())
def test_generator_keeps_inputs_and_repeats(name, awkward):
    X, y = awkward
    g, before = generators.family.load(name)(), X.copy()
    runs = []
    for _ in range(2):
        states = [g.summarise(X[y == c], np.random.default_rng(1)) for c in np.unique(y)]
        runs.append(g.proxies(states))
    assert np.array_equal(X, before)
    for p, q, c in zip(*runs, np.unique(y)):
        assert np.array_equal(p, q)
        assert p.shape[1] == X.shape[1]
        assert 1 <= len(p) <= max((y == c).sum(), 1)
        assert np.isfinite(p).all()


@pytest.mark.parametrize("name", generators.family.names())
def test_generator_k_is_an_upper_bound(name, awkward):
    X, y = awkward
    cls = generators.family.load(name)
    if "k" not in {f.name for f in fields(cls)}:
        return
    for k in (1, 3, 1000):
        g = cls(k=k)
        parts = g.proxies([g.summarise(X[y == c], np.random.default_rng(1)) for c in (0, 1, 2)])
        for c, part in enumerate(parts):
            distinct = len(np.unique(X[y == c], axis=0))
            assert 1 <= len(part) <= min(k, (y == c).sum())
            assert len(part) >= min(k, distinct)


@pytest.mark.parametrize("name", generators.family.names())
def test_declared_sharing_is_true(name, awkward):
    X, _ = awkward
    cls = generators.family.load(name)
    a, b = (cls().summarise(X[:29], np.random.default_rng(s)) for s in (1, 2))
    if not cls.seeded:
        assert all(np.array_equal(a[key], b[key]) for key in a)
    if cls.nested:
        few, many = (cls(k=k).summarise(X[:29], np.random.default_rng(1))["rows"] for k in (4, 15))
        assert np.array_equal(few, many[:4])


@pytest.mark.parametrize("name", generators.family.names())
def test_many_requests_make_the_proxies_of_each_alone(name, awkward):
    X, y = awkward
    cls = generators.family.load(name)
    points = [cls()]
    for p in fields(cls):
        points += [cls(**{p.name: v}) for v in ((1, 4, 40) if p.name == "k" else (other_value(p),))]
    for Xc in (X[y == 0], X[y == 1], X[y == 2]):
        requests = [Request(g, (seed, 5)) for seed in (1, 2) for g in points]
        states = cls.summarise_many(Xc, requests)
        assert len(states) == len(requests)
        if issubclass(cls, Picker):
            for state, places in zip(states, cls.pick_many(Xc, requests), strict=True):
                assert np.array_equal(state["rows"], Xc[places])
        for r, state in zip(requests, states):
            alone = r.generator.summarise(Xc, np.random.default_rng(r.entropy))
            (one,), (two,) = r.generator.proxies([alone]), r.generator.proxies([state])
            assert np.array_equal(one, two), r
            assert len(two) <= r.generator.most(len(Xc)) <= len(Xc)


@pytest.mark.parametrize("name", generators.family.names())
def test_extension(name, awkward):
    """Exact where it says so; everywhere usable, deterministic and free of side effects."""
    X, _ = awkward
    g = generators.family.load(name)()
    whole = g.summarise(X[:29], np.random.default_rng(5))
    first = g.summarise(X[:11], np.random.default_rng(5))
    kept = {k: v.copy() for k, v in first.items()}
    more = g.extend(first, X[11:29], np.random.default_rng(5))
    again = g.extend(first, X[11:29], np.random.default_rng(5))
    assert all(np.array_equal(kept[k], first[k]) for k in kept)
    assert set(more) == set(whole)
    (P,), (A,), (W,) = (g.proxies([s]) for s in (more, again, whole))
    assert np.array_equal(P, A)
    assert P.shape == W.shape
    assert np.isfinite(P).all()
    if g.exact_extension:
        np.testing.assert_allclose(P, W, rtol=1e-6)


@pytest.mark.parametrize("name", generators.family.names())
def test_generator_picks_as_it_declares(name):
    g, rng = generators.family.load(name)(), np.random.default_rng(0)
    X, by = rng.normal(size=(40, 6)), rng.uniform(0.1, 10, (40, 1))
    (before,), (after,) = (g.proxies([g.summarise(rows, np.random.default_rng(1))]) for rows in (X, X / by))
    places = [i for row in before for i in np.flatnonzero((row == X).all(axis=1))]
    if isinstance(g, Picker):
        assert len(places) == len(before)
        blindly = len(places) == len(after) and np.array_equal(after, (X / by)[places])
        assert blindly == g.picks_blindly


# Normalisers


@pytest.mark.parametrize("name", normalisers.family.names())
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_normaliser_is_pure(name, dtype, awkward):
    n, X = normalisers.family.load(name)(), awkward[0].astype(dtype)
    before, reference = X.copy(), X[::-1][:20] * 3
    for ref in (None, reference):
        out = n.apply(X, ref)
        assert out.shape == X.shape
        assert out.dtype == dtype
        assert np.isfinite(out).all()
        assert np.array_equal(X, before)
        if not n.uses_reference:
            np.testing.assert_allclose(n.apply(out, ref), out, atol=1e-6)
            assert not out[0].any()


@pytest.mark.parametrize("name", normalisers.family.names())
def test_normaliser_in_turn_is_one_after_another(name, awkward):
    n, done = normalisers.family.load(name)(), []
    parts = [awkward[0][i:j] for i, j in ((0, 20), (20, 21), (21, 40), (36, 60))]
    for part in parts:
        done.append(n.apply(part, np.concatenate(done) if done else None))
    ready = [n.prepare(np.concatenate([part, part[::-1]]))[: len(part)] for part in parts]
    for part, prepared, reference, expected in zip(parts, ready, n.references(parts), done, strict=True):
        found = part if reference is None else np.empty_like(part)
        if reference is not None:
            n.finish(prepared, reference, found)
        if reference is not None or n.uses_reference:
            assert np.array_equal(found, expected)
            assert found.dtype == expected.dtype


@pytest.mark.parametrize("name", normalisers.family.names())
def test_normaliser_declares_whether_the_first_class_alone_matters(name, awkward):
    n, X = normalisers.family.load(name)(), awkward[0]
    here, there = n.references([X[:9], X[9:12], X[12:20]]), n.references([X[:9], X[20:23], X[30:38]])
    if n.uses_reference:
        assert n.first_alone_matters == all(np.array_equal(a, b) for a, b in zip(here[1:], there[1:]))
    else:
        assert not n.first_alone_matters


@pytest.mark.parametrize("name", normalisers.family.names())
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_normaliser_divides_by_what_it_says(name, dtype, awkward):
    n, X = normalisers.family.load(name)(), awkward[0].astype(dtype)
    divisors = n.divisors(X[1:])
    assert (divisors is not None) == (n.keeps_direction and not n.uses_reference)
    if divisors is not None:
        assert divisors.dtype == dtype
        assert np.array_equal(X[1:] / divisors[:, None], n.apply(X[1:]))
    tiny = n.divisors(X[1:] * dtype(1e-35))
    assert tiny is None or np.array_equal(tiny, np.ones(len(tiny)))


@pytest.mark.parametrize("name", normalisers.family.names())
def test_normaliser_declares_whether_directions_stay(name, awkward):
    n, X = normalisers.family.load(name)(), awkward[0].astype(np.float64)
    out = n.apply(X, X[::-1][:20] * 3)
    cosine = np.einsum("ij,ij->i", X, out) / np.maximum(np.linalg.norm(X, axis=1) * np.linalg.norm(out, axis=1), 1e-300)
    assert np.allclose(cosine[1:], 1, atol=1e-12) == n.keeps_direction


# Aggregators

AGGREGATORS = [
    a
    for cls in aggregators.family
    for a in [cls(), *(cls(**{p.name: v}) for p in fields(cls) for v in (p.metadata["choices"] or [other_value(p)]))]
]


@pytest.mark.parametrize("a", AGGREGATORS, ids=str)
@pytest.mark.parametrize("deeper", [1, 7])
def test_shortlists_decide_as_scores_do(a, deeper, awkward):
    X, _ = awkward
    sizes = (9, 1, 14)
    parts = np.split(X[: sum(sizes)], np.cumsum(sizes)[:-1])
    scores = a.scores(X[24:], Proxies(X[: sum(sizes)], np.repeat(np.arange(3), sizes)), 3)
    deep = replace(a, m=a.m + deeper) if a.depth > 1 else a
    lists = deep.shortlists(X[24:], parts)
    assert all(s.shape[1] == len(X) - 24 and len(s) <= min(deep.depth, len(p)) for s, p in zip(lists, parts))
    decided = a.decide(deep.gather(lists))
    assert decided.shape == (3, len(X) - 24)
    np.testing.assert_allclose(decided.T, scores, rtol=1e-5)
    np.testing.assert_array_equal(decided.argmax(axis=0), scores.argmax(axis=1))


@pytest.mark.parametrize("a", AGGREGATORS, ids=str)
def test_aggregator_declares_whether_the_best_score_decides(a, awkward):
    X, parts = awkward[0], [awkward[0][:9], awkward[0][9:12], awkward[0][10:24]]
    best = np.array([(X[24:] @ part.T).max(axis=1) for part in parts])
    decided = a.decide(a.gather(a.shortlists(X[24:], parts)))
    assert a.by_best_score == (decided.shape == best.shape and np.allclose(decided, best, rtol=1e-5))


@pytest.mark.parametrize("a", AGGREGATORS, ids=str)
def test_aggregator_declares_which_lengths_it_heeds(a, awkward):
    rng = np.random.default_rng(3)
    Q, W = rng.normal(size=(200, 7)), rng.normal(size=(60, 7))
    labels = np.repeat([0, 1, 2], 20)
    plain = a.scores(Q, Proxies(W, labels), 3).argmax(axis=1)
    longer = a.scores(Q * rng.uniform(1, 50, (200, 1)), Proxies(W, labels), 3).argmax(axis=1)
    other = a.scores(Q, Proxies(W * rng.uniform(1, 50, (60, 1)), labels), 3).argmax(axis=1)
    assert (not np.array_equal(plain, longer), not np.array_equal(plain, other)) == a.heeds_lengths


@pytest.mark.parametrize("name", aggregators.family.names())
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_aggregator_ignores_proxy_order_within_classes(name, dtype, awkward):
    X = awkward[0].astype(dtype)
    a = aggregators.family.load(name)()
    labels = np.repeat([0, 1, 2], 10)
    P = Proxies(X[:30], labels)
    r = np.concatenate([np.random.default_rng(2).permutation(10) + 10 * c for c in range(3)])
    Q, before = X[35:], X.copy()
    S = a.scores(Q, P, 3)
    assert S.shape == (25, 3)
    assert S.dtype == dtype
    assert np.isfinite(S).all()
    np.testing.assert_allclose(S, a.scores(Q, Proxies(X[:30][r], labels), 3), rtol=1e-4)
    R = a.probabilities(S, 1.0)
    np.testing.assert_allclose(R.sum(axis=1), 1, rtol=1e-6)
    assert (R >= 0).all()
    assert np.array_equal(X, before)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.kind)
def test_every_file_holds_one_component(family):
    assert family.names()
    for cls in family:
        assert issubclass(cls, Component)
