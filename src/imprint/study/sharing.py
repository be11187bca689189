"""Which experiments share computations, by the types of their components; the only
module that lists these types.

A component of another type shares class states only with experiments that need exactly
the same state. Everything else is computed for each experiment separately, by `Head`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from imprint.aggregators._base import Aggregator
from imprint.aggregators.kernel import Kernel
from imprint.aggregators.max import Max
from imprint.aggregators.nearest import Nearest
from imprint.core.arrays import Array, State, class_entropy
from imprint.gaussian_process.gaussian import MAX_SCORE_ERROR
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
from imprint.normalisers._base import Normaliser
from imprint.normalisers.l2 import L2
from imprint.normalisers.none import NoNorm
from imprint.normalisers.quantile import Quantile
from imprint.study.grid import Methods

# relative difference of two scores up to which they are a near tie
ROUNDING = 8 * float(np.finfo(np.float32).eps)
KERNEL_ROUNDING = 4 * MAX_SCORE_ERROR  # the same for `kernel`, whose sums cancel
# the proxies for a smaller k are the first k of those for a larger one
NESTED_GENERATORS = (Random, FPS, CovMax)
# the proxies are rows of the class
SELECTING_GENERATORS = (AllRows, Random, FPS, CovMax, KMedoids)
ROW_SCALINGS = (NoNorm, L2)  # the directions of rows do not change
SHAREABLE_TYPES = {
    "norm_pre": ROW_SCALINGS,
    "generator": (*SELECTING_GENERATORS, Mean, KMeans, LeastSquares, KLeastSquares),
    "norm_post": (*ROW_SCALINGS, Quantile),
    "norm_inf": ROW_SCALINGS,
    "aggregator": (Max, Nearest, Kernel),
}
"""The types of each part whose decisions can be computed together, except those by the
Manhattan distance.
"""


@dataclass(frozen=True, eq=False)
class ProxySpec:
    """How the proxies of a class are computed; the seed is None if the proxies do not
    depend on it.
    """

    number: int
    norm_pre: Normaliser
    generator: Generator
    seed: int | None


def is_shareable(methods: Methods) -> Array:
    """Whether the decisions of each method can be computed together; `Head` computes
    the others.  # (methods,)
    """
    has_types = [
        methods.has_type(part, *types) for part, types in SHAREABLE_TYPES.items()
    ]
    manhattan = methods.map_part(
        "aggregator", lambda a: type(a) is Nearest and a.metric == "manhattan"
    )
    return np.asarray(np.all(has_types, axis=0) & ~manhattan)


def uses_seed(generator: Generator) -> bool:
    """Whether the proxies depend on the seed."""
    if type(generator) is KMedoids:
        return generator.method == "fasterpam" and generator.k > 1
    return type(generator) not in (AllRows, Mean, CovMax, LeastSquares)


def canonical(methods: Methods) -> Methods:
    """The methods, with components that cannot change the argmax reset to a default, so
    that equal decisions are found.

    Decisions by `max` do not depend on the lengths of queries or on the temperature.
    Decisions by cosine do not depend on any lengths. Rows that are L2-normalised before
    they are selected as proxies need no second normalisation.
    """
    by_max = methods.has_type("aggregator", Max)
    by_cosine = methods.map_part(
        "aggregator", lambda a: type(a) is Nearest and a.metric == "cosine"
    )
    scales_queries = methods.has_type("norm_inf", *ROW_SCALINGS)
    unit_rows = methods.has_type("norm_pre", L2) & methods.has_type(
        "generator", *SELECTING_GENERATORS
    )
    l2_after = methods.has_type("norm_post", L2)
    methods = methods.with_part("aggregator", Max(), by_max)
    methods = methods.with_part(
        "norm_inf", NoNorm(), (by_max | by_cosine) & scales_queries
    )
    return methods.with_part("norm_post", NoNorm(), l2_after & (by_cosine | unit_rows))


def min_proxies(aggregator: Aggregator) -> int:
    """The minimum number of proxies for an aggregator."""
    return aggregator.m if type(aggregator) is Nearest else 1


def max_proxies(generator: Generator, sizes: Array) -> float:
    """The maximum number of proxies of classes of these sizes; infinity if unknown."""
    if type(generator) not in SHAREABLE_TYPES["generator"]:
        return np.inf
    if type(generator) is AllRows:
        return float(np.sum(sizes))
    if type(generator) is KMeans:
        return float(sum(min(size, generator.limit(size)) for size in sizes))
    return float(np.minimum(sizes, getattr(generator, "k", 1)).sum())


def containing_specs(specs: Sequence[ProxySpec]) -> dict[ProxySpec, ProxySpec]:
    """For each spec of a class, one whose state contains its state; only those states
    are computed.

    For nested generators that is the spec with the largest k. The state of least
    squares does not depend on `reg`.
    """
    # k orders generators whose states are nested; of others, each is its own
    by_k = sorted(specs, key=lambda spec: _nesting_order(spec.generator))
    largest = {_state_key(spec): spec for spec in by_k}
    return {spec: largest[_state_key(spec)] for spec in specs}


def _nesting_order(generator: Generator) -> int:
    return generator.k if type(generator) in NESTED_GENERATORS else 0  # type: ignore[attr-defined]


def _state_key(spec: ProxySpec) -> object:
    """Equal for specs of a class that can use one state."""
    kind = type(spec.generator)
    if kind in NESTED_GENERATORS:
        return kind, spec.seed
    if kind in (LeastSquares, KLeastSquares):
        return kind, getattr(spec.generator, "k", 1), spec.seed
    return spec


def summarise(X: Array, label: object, specs: Sequence[ProxySpec]) -> list[State]:
    """The states of a class for generators of one type.

    k-means shares the seeding and the products of rows, least squares the sum of outer
    products, k-medoids the distances.
    """
    kind = type(specs[0].generator)
    generators: list[Any] = [spec.generator for spec in specs]
    seeds = [class_entropy(spec.seed or 0, label) for spec in specs]
    mass = np.ones(len(X))
    if kind in (KMeans, KLeastSquares):
        limits = [g.limit(len(X)) if kind is KMeans else g.k for g in generators]
        problems = [Problem(0, k, seed) for k, seed in zip(limits, seeds)]
        clusterings = kmeans_many([X], problems)
        if kind is KMeans:
            return [
                {"rows": c.centres, "mass": c.mass, "spread": c.spread}
                for c in clusterings
            ]
        shared = moments(X)
        return [{**cluster_means(X, mass, c.labels), **shared} for c in clusterings]
    rngs = map(np.random.default_rng, seeds)
    if kind is KMedoids:
        with one_blas_thread():
            pairs = Pairwise(X)
            medoids = [g.search(pairs, mass, rng) for g, rng in zip(generators, rngs)]
        return [medoid_state(X, mass, np.zeros(len(X)), m) for m in medoids]
    return [g.summarise(X, rng) for g, rng in zip(generators, rngs)]


def prefix(generator: Generator, state: State) -> State:
    """The state of a generator, given a state that contains it; for nested generators,
    its first k rows.
    """
    if type(generator) in NESTED_GENERATORS:
        return {"rows": state["rows"][: generator.k]}  # type: ignore[attr-defined]
    return state


def work(generator: Generator, n: int, d: int) -> float:
    """The approximate number of multiplications for the proxies of n rows of width
    d.
    """
    k = generator.limit(n) if type(generator) is KMeans else getattr(generator, "k", 1)
    if type(generator) is KMedoids:
        return n * n / 10.0 * (d + 4 * k)
    return float(n * d * k) * (40 if type(generator) in (KMeans, KLeastSquares) else 1)
