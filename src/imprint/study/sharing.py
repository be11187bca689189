"""Which experiments share computations, by the types of their components; the only
module that lists these types.

A component of another type shares class states only with experiments that need exactly
the same state. Everything else is computed for each experiment separately, by `Head`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

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

# Relative difference of two scores up to which they are a near tie. Products of float32
# rows of a few hundred columns differ by a few eps between one order of summation and
# another.
ROUNDING = 8 * float(np.finfo(np.float32).eps)
KERNEL_ROUNDING = 4 * MAX_SCORE_ERROR  # the same for `kernel`, whose sums cancel
# the proxies for a smaller k are the first k of those for a larger one
NESTED_GENERATORS = (Random, FPS, CovMax)
# the proxies are rows of the class
SELECTING_GENERATORS = (AllRows, Random, FPS, CovMax, KMedoids)
ROW_SCALINGS = (NoNorm, L2)  # the directions of rows do not change
# Of k-means, for estimates of the work; the number varies with the data.
ITERATIONS = 40

Seed: TypeAlias = tuple[int, int]
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
    shareable = ~methods.map_part("aggregator", _is_nearest_by("manhattan"))
    for part, types in SHAREABLE_TYPES.items():
        shareable &= methods.has_type(part, *types)
    return shareable


def _is_nearest_by(metric: str) -> Callable[[Aggregator], bool]:
    """Tells whether an aggregator is `nearest` with this metric."""
    return lambda aggregator: (
        type(aggregator) is Nearest and aggregator.metric == metric
    )


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
    by_cosine = methods.map_part("aggregator", _is_nearest_by("cosine"))
    scales_queries = methods.has_type("norm_inf", *ROW_SCALINGS)
    selects_rows = methods.has_type("generator", *SELECTING_GENERATORS)
    has_unit_proxies = methods.has_type("norm_pre", L2) & selects_rows
    l2_after = methods.has_type("norm_post", L2)

    ignores_length_of_query = (by_max | by_cosine) & scales_queries
    ignores_l2_after = l2_after & (by_cosine | has_unit_proxies)
    methods = methods.with_part("aggregator", Max(), by_max)
    methods = methods.with_part("norm_inf", NoNorm(), ignores_length_of_query)
    return methods.with_part("norm_post", NoNorm(), ignores_l2_after)


def min_proxies(aggregator: Aggregator) -> int:
    """The minimum number of proxies for an aggregator."""
    return aggregator.m if type(aggregator) is Nearest else 1


def max_proxies(generator: Generator, sizes: Array) -> float:
    """The maximum number of proxies of classes of these sizes; infinity if unknown."""
    if type(generator) not in SHAREABLE_TYPES["generator"]:
        return np.inf
    if type(generator) is AllRows:
        return float(np.sum(sizes))
    return float(sum(min(size, _budget(generator, size)) for size in sizes.tolist()))


def _budget(generator: Generator, rows: int) -> int:
    """The maximum number of proxies of a class with so many rows; 1 if the generator
    has no such parameter.
    """
    if isinstance(generator, KMeans):
        return generator.limit(rows)
    return int(getattr(generator, "k", 1))


def containing_specs(specs: Sequence[ProxySpec]) -> dict[ProxySpec, ProxySpec]:
    """For each spec of a class, one whose state contains its state; only those states
    are computed.

    For nested generators that is the spec with the largest k. The state of least
    squares does not depend on `reg`.
    """
    by_k = sorted(specs, key=lambda spec: _nesting_order(spec.generator))
    # The last one of equal keys is kept: that with the largest k.
    largest = {_state_key(spec): spec for spec in by_k}
    return {spec: largest[_state_key(spec)] for spec in specs}


def _nesting_order(generator: Generator) -> int:
    """The number of proxies k, which orders generators whose states are nested."""
    if type(generator) not in NESTED_GENERATORS:
        return 0
    return int(getattr(generator, "k", 0))


def _state_key(spec: ProxySpec) -> object:
    """Equal for specs of a class that can use one state."""
    kind = type(spec.generator)
    if kind in NESTED_GENERATORS:
        return kind, spec.seed
    if kind in (LeastSquares, KLeastSquares):
        return kind, getattr(spec.generator, "k", 1), spec.seed
    return spec


def summarise(
    X: Array,
    label: object,
    specs: Sequence[ProxySpec],
) -> list[State]:
    """The states of a class for generators of one type.

    k-means shares the seeding and the products of rows, least squares the sum of outer
    products, k-medoids the distances.
    """
    kind = type(specs[0].generator)
    generators = [spec.generator for spec in specs]
    seeds = [class_entropy(spec.seed or 0, label) for spec in specs]
    if kind in (KMeans, KLeastSquares):
        return _cluster_states(X, generators, seeds)
    if kind is KMedoids:
        return _medoid_states(X, cast(list[KMedoids], generators), seeds)
    states = []
    for generator, seed in zip(generators, seeds):
        states.append(generator.summarise(X, np.random.default_rng(seed)))
    return states


def _cluster_states(
    X: Array,
    generators: Sequence[Generator],
    seeds: Sequence[Seed],
) -> list[State]:
    """The states of k-means, or of k-least-squares, all of one type."""
    problems = []
    for generator, seed in zip(generators, seeds):
        problems.append(Problem(0, _budget(generator, len(X)), seed))
    clusterings = kmeans_many([X], problems)
    if type(generators[0]) is KMeans:
        return [
            {"rows": c.centres, "mass": c.mass, "spread": c.spread} for c in clusterings
        ]
    # The products of all rows do not depend on the clusters.
    shared = moments(X)
    mass = np.ones(len(X))
    return [{**cluster_means(X, mass, c.labels), **shared} for c in clusterings]


def _medoid_states(
    X: Array,
    generators: Sequence[KMedoids],
    seeds: Sequence[Seed],
) -> list[State]:
    """The states of k-medoids, which share the distances of rows."""
    mass = np.ones(len(X))
    states = []
    with one_blas_thread():
        pairs = Pairwise(X)
        for generator, seed in zip(generators, seeds):
            medoids = generator.search(pairs, mass, np.random.default_rng(seed))
            states.append(medoid_state(X, mass, np.zeros(len(X)), medoids))
    return states


def prefix(generator: Generator, state: State) -> State:
    """The state of a generator, given a state that contains it; for nested generators,
    its first k rows.
    """
    if type(generator) in NESTED_GENERATORS:
        k = _nesting_order(generator)
        return {"rows": state["rows"][:k]}
    return state


def work(
    generator: Generator,
    n: int,
    d: int,
) -> float:
    """The approximate number of multiplications for the proxies of n rows of width
    d.
    """
    k = _budget(generator, n)
    if type(generator) is KMedoids:
        # The distances of all pairs of rows of a class, and the search. In ten classes
        # of equal size, n^2 / 10 pairs share a class.
        return n * n / 10.0 * (d + 4 * k)
    distances = float(n * d * k)
    if type(generator) in (KMeans, KLeastSquares):
        return ITERATIONS * distances
    return distances
