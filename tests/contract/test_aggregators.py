"""The contract that every aggregator must fulfil."""

import json
from dataclasses import replace

import numpy as np
import pytest
from tests.contract.found import AGGREGATORS, run

from imprint.aggregators._base import Change
from imprint.aggregators.kernel import Kernel
from imprint.aggregators.max import Max
from imprint.aggregators.nearest import Nearest
from imprint.core.arrays import Proxies
from imprint.core.layout import to_arrays, to_states
from imprint.export.onnx import Graph


def proxies(dtype=np.float64, order=None):
    """Thirty proxies of three classes, of unequal mass and spread."""
    rng = np.random.default_rng(4)
    rows = np.arange(30) if order is None else order
    weights, mass, spread = (
        rng.normal(size=(30, 7)),
        rng.integers(1, 9, 30) * 1.0,
        rng.uniform(0, 0.5, 30),
    )
    return Proxies(
        weights[rows].astype(dtype),
        np.repeat([0, 1, 2], [9, 1, 20]),
        mass[rows],
        spread[rows],
    )


def prepared(a, P, rows=None):
    rows = (
        np.random.default_rng(8).normal(size=(50, 7)).astype(P.weights.dtype)
        if rows is None
        else rows
    )
    return a.prepare(P, a.sums(rows, rows))


def queries(dtype):
    return np.random.default_rng(9).normal(size=(40, 7)).astype(dtype)


@pytest.mark.parametrize("a", AGGREGATORS, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_aggregator_scores_every_class_whatever_the_order_of_its_proxies(a, dtype):
    order = np.concatenate(
        [
            np.random.default_rng(2).permutation(9),
            [9],
            10 + np.random.default_rng(2).permutation(20),
        ]
    )
    P, Q = proxies(dtype), queries(dtype)
    before = [v.copy() for v in (*P[:4], Q)]
    ready = prepared(a, P)
    S = a.scores(Q, ready)
    assert S.shape == (40, 3)
    assert S.dtype == dtype
    assert np.isfinite(S).all()
    np.testing.assert_allclose(
        S, a.scores(Q, prepared(a, proxies(dtype, order))), rtol=1e-4, atol=1e-5
    )
    np.testing.assert_allclose(S[:7], a.scores(Q[:7], ready), rtol=1e-5, atol=1e-6)
    R = a.probabilities(S, ready)
    np.testing.assert_allclose(R.sum(axis=1), 1, rtol=1e-5)
    assert (R >= 0).all()
    assert np.array_equal(R[np.arange(40), S.argmax(axis=1)], R.max(axis=1)), (
        "the winner is among the most probable"
    )
    assert all(np.array_equal(v, w) for v, w in zip((*P[:4], Q), before))


@pytest.mark.parametrize("a", AGGREGATORS, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores_and_doubt_together_are_those_of_each(a, dtype):
    P, Q = proxies(dtype), queries(dtype)
    ready = prepared(a, P)
    S, doubt = a.scores_and_doubt(Q, ready)
    np.testing.assert_allclose(S, a.scores(Q, ready), rtol=0, atol=2e-6)
    alone = a.doubt(Q, ready)
    if alone is None:
        assert doubt is None
    else:
        np.testing.assert_allclose(doubt, alone, rtol=0, atol=1e-5)


@pytest.mark.parametrize("a", AGGREGATORS, ids=str)
def test_sums_are_additive_and_match_their_layout(a):
    X = np.random.default_rng(1).normal(size=(30, 7))
    whole, parts = (
        a.sums(X, X / 2),
        [a.sums(X[rows], X[rows] / 2) for rows in (slice(11), slice(11, 30))],
    )
    for name, value in whole.items():
        np.testing.assert_allclose(a.merge(parts)[name], value, rtol=1e-12, atol=1e-12)
    for state in to_states(to_arrays("sums", [*parts, whole]), "sums", a.layout, 3, 7):
        assert set(state) <= set(a.layout)


@pytest.mark.parametrize("a", AGGREGATORS, ids=str)
def test_evidence_and_doubt_are_finite_and_consistent(a):
    P, Q = proxies(), queries(np.float64)
    ready = prepared(a, P)
    S = a.scores(Q, ready)
    for q, scores in zip(Q, S):
        evidence = a.evidence(q, P, ready, int(scores.argmax()))
        assert evidence.shape == (30,)
        assert np.isfinite(evidence).all()
        assert a.measure in ("distance", "similarity", "weight")
        if a.measure == "distance":
            assert (evidence >= 0).all()
        if a.measure == "weight":
            assert evidence.sum() == pytest.approx(scores.max())
    doubt = a.doubt(Q, ready)
    if doubt is not None:
        assert doubt.shape == (40,)
        assert np.isfinite(doubt).all()
        assert (doubt >= 0).all()
        assert (a.doubt(Q * 1e3, ready) >= doubt - 1e-9).all(), (
            "doubt increases far from all proxies"
        )


@pytest.mark.parametrize("blocks", [(), (3, 4)], ids=["plain", "blocks"])
@pytest.mark.parametrize("a", AGGREGATORS, ids=str)
def test_a_gradient_is_that_of_the_scores(a, blocks):
    if blocks and getattr(a, "weights", None) == (1.0,):
        a = replace(a, weights=(0.5, 2.0))
    P = proxies()._replace(blocks=blocks)
    ready = prepared(a, P)
    direction = np.array([1.0, -0.5, -0.25])
    step = 1e-6
    found = 0
    for q in queries(np.float64)[:5]:
        slope = a.gradient(q, P, ready, direction)
        if slope is None:
            continue
        moved = np.concatenate([q + step * np.eye(7), q - step * np.eye(7)])
        S = a.scores(moved, ready) @ direction
        measured = (S[:7] - S[7:]) / (2 * step)
        np.testing.assert_allclose(slope, measured, rtol=1e-4, atol=1e-6)
        found += 1
    assert found in (0, 5)
    if a in (Kernel(), Max(), Nearest()):
        assert found == 5


@pytest.mark.parametrize("a", AGGREGATORS, ids=str)
def test_updating_a_system_equals_preparing_it(a, monkeypatch):
    monkeypatch.setattr("imprint.gaussian_process.scale.MAX_RESOLVED_PROXIES", 5)
    P, Q = proxies(), queries(np.float64)
    few = Proxies(P.weights[:10], P.labels[:10], P.mass[:10], P.spread[:10])
    rows = np.random.default_rng(8).normal(size=(50, 7))
    sums = a.sums(rows, rows)
    none = np.empty(0, dtype=np.intp)
    added = Proxies(P.weights[10:], P.labels[10:], P.mass[10:], P.spread[10:])
    updated = a.update(
        Change(a.prepare(few, sums), none, added, P.labels, P.mass, lambda: P), sums
    )
    assert (updated is not None) == isinstance(a, Kernel)
    if updated is not None:
        np.testing.assert_allclose(
            a.scores(Q, updated), a.scores(Q, a.prepare(P, sums)), rtol=1e-9
        )


@pytest.mark.parametrize("a", AGGREGATORS, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_graph_and_facts_of_an_aggregator_are_correct(a, dtype):
    P, Q = proxies(dtype), queries(dtype)
    ready, g = prepared(a, P), Graph()
    S = a.scores(Q, ready)
    result = a.graph(g, "x", P, ready)
    if result is not None:
        scores, probabilities = run(g, {"x": Q}, result)
        np.testing.assert_allclose(scores, S, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(
            probabilities, a.probabilities(S, ready), rtol=2e-3, atol=1e-5
        )
    facts = a.facts(P, ready)
    if facts is not None:
        assert facts.use.endswith(".")
        assert json.loads(json.dumps(facts.numbers)) == facts.numbers
        assert all(
            isinstance(t, np.ndarray) and np.isfinite(t).all()
            for t in facts.tensors.values()
        )
