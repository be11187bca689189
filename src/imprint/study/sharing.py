"""Which computations have the same result, by the types of components; the only module that knows these types.

A component of another type shares class states only with experiments that need exactly the same state. Everything else
is computed for each experiment separately, by `Head`.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from imprint.aggregators._base import Aggregator
from imprint.aggregators.kernel import Kernel
from imprint.aggregators.max import Max
from imprint.aggregators.nearest import Nearest
from imprint.core.types import Array, State
from imprint.gaussian_process.gaussian import ERROR
from imprint.generators._base import Generator
from imprint.generators.all import AllRows
from imprint.generators.covmax import CovMax
from imprint.generators.fps import FPS
from imprint.generators.k_least_squares import KLeastSquares, cluster_means
from imprint.generators.kmeans import KMeans
from imprint.generators.kmedoids import KMedoids, medoid_state
from imprint.generators.least_squares import LeastSquares
from imprint.generators.mean import Mean
from imprint.generators.random import Random
from imprint.kernels.cpu import one_blas_thread
from imprint.kernels.kmeans import Problem, kmeans_many
from imprint.kernels.medoids import Pairwise
from imprint.kernels.ridge import moments
from imprint.normalisers.l2 import L2
from imprint.normalisers.none import NoNorm
from imprint.normalisers.quantile import Quantile
from imprint.study.grid import Methods

ROUNDING = 8 * float(np.finfo(np.float32).eps)
KERNEL_ROUNDING = 4 * ERROR  # sums cancel: float32 exponents shift a score by up to ERROR
NESTED = (Random, FPS, CovMax)
"""The proxies for a smaller k are the first k of those for a larger one."""
SELECTED_ROWS = (AllRows, Random, FPS, CovMax, KMedoids)
"""The proxies are rows of the class."""
ROW_SCALINGS = (NoNorm, L2)
"""Norms that do not change the direction of a row."""
PROXY_NORMS = (*ROW_SCALINGS, Quantile)
GENERATORS = (*SELECTED_ROWS, Mean, KMeans, LeastSquares, KLeastSquares)


def is_shareable(methods: Methods) -> Array:
    """Whether the decisions of each method can be computed together; `Head` computes the others.  # (methods,)"""
    return (
        methods.map_part("norm_pre", lambda norm: type(norm) in ROW_SCALINGS)
        & methods.map_part("generator", lambda g: type(g) in GENERATORS)
        & methods.map_part("norm_post", lambda norm: type(norm) in PROXY_NORMS)
        & methods.map_part("norm_inf", lambda norm: type(norm) in ROW_SCALINGS)
        & methods.map_part("aggregator", _is_shareable_aggregator)
    )


def _is_shareable_aggregator(aggregator: Aggregator) -> bool:
    return type(aggregator) in (Max, Kernel) or (type(aggregator) is Nearest and aggregator.metric != "manhattan")


def rounding_of(aggregator: Aggregator) -> float:
    """The relative difference below which rounding can swap the two best scores."""
    return KERNEL_ROUNDING if type(aggregator) is Kernel else ROUNDING


class StateRequest(NamedTuple):
    """A generator and the seed of its random numbers; empty if it draws none."""

    generator: Generator
    entropy: tuple[int, ...]


def uses_seed(generator: Generator) -> bool:
    """Whether the proxies depend on the seed."""
    if type(generator) is KMedoids:
        return generator.method == "fasterpam" and generator.k > 1
    return type(generator) not in (AllRows, Mean, CovMax, LeastSquares)


def canonical(methods: Methods) -> Methods:
    """Methods with the same decisions up to rounding, with components that cannot change the argmax reset.

    Decisions by `max` do not depend on the lengths of queries or on its temperature, those by cosine on no lengths at
    all. Rows that are L2-normalised before they are selected as proxies need no second normalisation.
    """
    by_max = methods.map_part("aggregator", lambda a: type(a) is Max)
    cosine = methods.map_part("aggregator", lambda a: type(a) is Nearest and a.metric == "cosine")
    division = methods.map_part("norm_inf", lambda norm: type(norm) in ROW_SCALINGS)
    selected = methods.map_part("generator", lambda g: type(g) in SELECTED_ROWS)
    l2_before, l2_after = (methods.map_part(part, lambda norm: type(norm) is L2) for part in ("norm_pre", "norm_post"))
    methods = methods.with_part("aggregator", Max(), by_max)
    methods = methods.with_part("norm_inf", NoNorm(), (by_max | cosine) & division)
    return methods.with_part("norm_post", NoNorm(), l2_after & (cosine | (l2_before & selected)))


def proxies_needed(aggregator: Aggregator) -> int:
    """The minimum number of proxies for an aggregator."""
    return aggregator.m if type(aggregator) is Nearest else 1


def most_proxies(generator: Generator, sizes: Array) -> float:
    """The maximum number of proxies of classes of these sizes; infinity if unknown."""
    if type(generator) in (Mean, LeastSquares):
        return len(sizes)
    if type(generator) is AllRows:
        return float(sizes.sum())
    if type(generator) in (*NESTED, KMeans, KMedoids, KLeastSquares):
        return float(np.minimum(sizes, generator.k).sum())  # type: ignore[attr-defined]
    return float("inf")


def serving_requests(requests: Sequence[StateRequest]) -> list[StateRequest]:
    """For each request, the one whose state contains its state: the largest k of nested generators, any ridge."""
    largest: dict[object, StateRequest] = {}
    keys = []
    for request in requests:
        g, entropy = request
        key: object = request
        if type(g) in NESTED:
            key = type(g), entropy
        elif type(g) is LeastSquares:
            key = LeastSquares
        elif type(g) is KLeastSquares:
            key = KLeastSquares, g.k, entropy
        if key not in largest or getattr(g, "k", 0) > getattr(largest[key].generator, "k", 0):
            largest[key] = request
        keys.append(key)
    return [largest[key] for key in keys]


def summarise(X: Array, requests: Sequence[StateRequest]) -> tuple[list[State], list[int]]:
    """States of a class, and for each request the index of the state that contains its own.

    Generators of one type share work: k-means its seeding and the products of rows, k-medoids the distances between
    rows, ridges the sums of outer products.
    """
    serving = serving_requests(requests)
    positions = {request: i for i, request in enumerate(dict.fromkeys(serving))}
    by_type: dict[type, list[StateRequest]] = {}
    for request in positions:
        by_type.setdefault(type(request.generator), []).append(request)
    states: list[State] = [{}] * len(positions)
    for kind, same_type in by_type.items():
        for request, state in zip(same_type, TOGETHER.get(kind, _one_by_one)(X, same_type)):
            states[positions[request]] = state
    return states, [positions[request] for request in serving]


def prefix(generator: Generator, state: State) -> State:
    """The state of a generator, given a state that contains it; for nested generators, its first k rows."""
    if type(generator) in NESTED:
        return {"rows": state["rows"][: generator.k]}  # type: ignore[attr-defined]
    return state


def _one_by_one(X: Array, requests: Sequence[StateRequest]) -> list[State]:
    return [r.generator.summarise(X, np.random.default_rng(r.entropy)) for r in requests]


def _clusterings(X: Array, requests: Sequence[StateRequest]) -> Any:
    return kmeans_many([X], [Problem(0, r.generator.k, r.entropy) for r in requests])  # type: ignore[attr-defined]


def _kmeans(X: Array, requests: Sequence[StateRequest]) -> list[State]:
    return [{"rows": f.centres, "mass": f.mass, "spread": f.spread} for f in _clusterings(X, requests)]


def _k_least_squares(X: Array, requests: Sequence[StateRequest]) -> list[State]:
    shared, mass = moments(X), np.ones(len(X))
    return [{**cluster_means(X, mass, f.labels), **shared} for f in _clusterings(X, requests)]


def _kmedoids(X: Array, requests: Sequence[StateRequest]) -> list[State]:
    one, none, states = np.ones(len(X)), np.zeros(len(X)), []
    with one_blas_thread():
        pairs = Pairwise(X)
        for generator, entropy in requests:
            medoids = generator.search(pairs, one, np.random.default_rng(entropy))  # type: ignore[attr-defined]
            states.append(medoid_state(X, one, none, medoids))
    return states


TOGETHER: dict[type, Callable[[Array, Sequence[StateRequest]], list[State]]] = {
    KMeans: _kmeans,
    KLeastSquares: _k_least_squares,
    KMedoids: _kmedoids,
}


def work(generator: Generator, n: int, d: int) -> float:
    """The approximate number of multiplications for the proxies of n rows of width d."""
    k = getattr(generator, "k", 1)
    if type(generator) is KMedoids:
        return n * n / 10.0 * (d + 4 * k)
    return float(n * d * k) * (40 if type(generator) in (KMeans, KLeastSquares) else 1)


def deciding_work(methods: Methods, queries: int) -> Array:
    """The approximate number of multiplications for one decision of each method."""
    return queries * np.where(is_shareable(methods), 1e4, 3e5)
