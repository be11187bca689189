"""The choice of block weights and of the metric, from the proxies alone.

Weights are chosen by leave-one-out predictions, which the inverse of the kernel matrix
gives in closed form (C. E. Rasmussen, C. K. I. Williams, 2006, section 5.4.2). For the
shrinkage of the metric that loss would be too optimistic, because the row that is left
out helped to make the metric; folds are not. Both are functions of the proxies, hence
of the states of the classes: the order in which classes came does not matter.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from imprint.core.arrays import Array, Proxies, rows_at, to_numpy
from imprint.core.blocks import column_slices
from imprint.gaussian_process.metric import (
    Metric,
    shrink_within_classes,
    weigh_blocks,
)
from imprint.kernels.cpu import one_blas_thread
from imprint.kernels.scores import softmax

MAX_PROXIES = 400
"""Proxies that take part in the choice. A matter of taste: with these many, the choice
takes a fraction of a second on one core, and 20 rows of 20 classes take part whole."""
FOLDS = 5
SHRINKAGES = (None, 0.1, 0.3, 1.0, 3.0)
"""Candidates, of which None is no metric. Fixed, 0.1 and 0.5 are level on eleven image
sets.
"""
TEMPERATURES = (0.05, 0.08, 0.12, 0.2, 0.3)
"""The log loss of scores is compared at the best of these: scores of many classes are
closer together than scores of few."""
MIN_LIKELIHOOD = 1e-6  # one row that is surely wrong must not decide alone


class Choice(NamedTuple):
    """What is chosen for some proxies."""

    weights: tuple[float, ...]  # of the blocks
    shrinkage: float | None  # of the within-class covariance; None for no metric


class Sample(NamedTuple):
    """The proxies that take part in the choice."""

    rows: Array  # (n, d) float64
    labels: Array  # (n,) indices 0, 1, ... of the classes that take part
    noise: Array  # (n,) noise variance before spread counts: noise / mass
    spread: Array  # (n,)
    mass: Array  # (n,)
    targets: Array  # (n, t) one-hot labels, or the labels of tags

    def part(self, index: Array) -> "Sample":
        """Some of the rows."""
        return Sample(*(field[index] for field in self))


def candidate_weights(count: int) -> list[tuple[float, ...]]:
    """The weightings of `count` blocks that are compared, of which the first is the
    last layer.

    The first candidate counts as the default: it wins ties, and is used where no class
    has two proxies. Many blocks are of two sorts (places and spreads of a map, shallow
    and deep layers), which a record lists one after the other: each half of them is
    also tried without the other half.
    """
    rest = count - 1
    others = (1.0,) * rest
    candidates = [
        (float(rest), *others),  # the last layer as much as all others together
        (1.0, *others),
        (2.0 * rest, *others),
        (1.0, *(0.0,) * rest),
        (0.0, *others),
    ]
    half = rest // 2
    if count > 3:
        candidates.append((float(rest), *(0.0,) * half, *others[half:]))
    if count > 4:
        first_half = (*others[:half], *(0.0,) * (rest - half))
        candidates += [(last, *first_half) for last in (float(half), 1.0, 0.0)]
    return list(dict.fromkeys(candidates))


def choose_metric(
    proxies: Proxies,
    noise: float,
    spread: float,
    targets: Array | None = None,
    weights: Sequence[float] | None = None,
    shrinkages: Sequence[float | None] = SHRINKAGES,
) -> Metric:
    """The metric for proxies with blocks.

    Parameters
    ----------
    proxies : Proxies
        With `blocks`.
    noise, spread : float
        As in `Kernel`.
    targets : array (p, t), optional
        What the proxies observe, in the place of their class: the labels of tags.
    weights : sequence of float, optional
        Fixed weights of the blocks; None to choose them.
    shrinkages : sequence of float or None
        The shrinkages to compare; None is no metric. A single one is not compared.
    """
    chosen = choose(proxies, noise, spread, targets, weights, shrinkages)
    with one_blas_thread():
        metric = weigh_blocks(proxies.blocks, chosen.weights)
        if chosen.shrinkage is None:
            return metric
        sample = sample_proxies(proxies, noise, targets)
        return shrink_within_classes(
            metric,
            sample.rows,
            sample.labels,
            chosen.shrinkage,
        )


def choose(
    proxies: Proxies,
    noise: float,
    spread: float,
    targets: Array | None,
    weights: Sequence[float] | None,
    shrinkages: Sequence[float | None],
) -> Choice:
    """The weights of the blocks, and the shrinkage; the parameters are those of
    `choose_metric`.
    """
    sample = sample_proxies(proxies, noise, targets)
    with one_blas_thread():
        if weights is None:
            weights = _choose_weights(sample, proxies.blocks, spread)
        if targets is not None:
            return Choice(tuple(weights), None)
        if len(shrinkages) == 1:
            return Choice(tuple(weights), shrinkages[0])
        metric = weigh_blocks(proxies.blocks, weights)
        compared = [shrinkage for shrinkage in shrinkages if shrinkage is not None]
        shrinkage = _choose_shrinkage(sample, metric, spread, compared)
        return Choice(tuple(weights), shrinkage)


def sample_proxies(
    proxies: Proxies,
    noise: float,
    targets: Array | None = None,
) -> Sample:
    """At most `MAX_PROXIES` proxies: the same number of each class, evenly spaced; of
    very many classes, some of them.
    """
    counts = np.bincount(proxies.labels)
    per_class = max(2, MAX_PROXIES // len(counts))
    classes = np.arange(len(counts))
    if len(counts) > MAX_PROXIES // per_class:
        classes = _evenly_spaced(len(counts), MAX_PROXIES // per_class)
    starts = proxies.starts
    index = np.concatenate(
        [starts[c] + _evenly_spaced(int(counts[c]), per_class) for c in classes]
    )
    labels = np.searchsorted(classes, proxies.labels[index])
    observed = np.eye(len(classes))[labels] if targets is None else targets[index]
    rows = to_numpy(rows_at(proxies.weights, index)).astype(np.float64)
    mass = proxies.mass[index]
    return Sample(rows, labels, noise / mass, proxies.spread[index], mass, observed)


def _evenly_spaced(count: int, limit: int) -> Array:
    """At most `limit` of the indices 0, 1, ..., count - 1."""
    if count <= limit:
        return np.arange(count)
    return np.arange(limit) * count // limit


def _choose_weights(
    sample: Sample,
    widths: tuple[int, ...],
    spread: float,
) -> tuple[float, ...]:
    """The candidate with the smallest leave-one-out loss."""
    candidates = candidate_weights(len(widths))
    assessed = _has_company(sample.labels)
    if not assessed.any():
        return candidates[0]
    products = [
        sample.rows[:, columns] @ sample.rows[:, columns].T
        for columns in column_slices(widths)
    ]
    losses = []
    for weights in candidates:
        total = sum(weights)
        inner = sum(w / total * block for w, block in zip(weights, products) if w)
        losses.append(_leave_one_out_loss(np.asarray(inner), sample, spread, assessed))
    return candidates[int(np.argmin(losses))]


def _has_company(labels: Array) -> Array:
    """Whether the class of each row has another row; without, its class is unknown when
    it is left out.  # (n,)
    """
    return np.asarray(np.bincount(labels)[labels] > 1)


def _choose_shrinkage(
    sample: Sample,
    metric: Metric,
    spread: float,
    candidates: Sequence[float],
) -> float | None:
    """The shrinkage with the smallest log loss over folds; None for no metric."""
    fold = _folds(sample.labels)
    if not (fold >= 0).any():
        return None
    scaled = sample.rows * metric.scales
    products = scaled @ scaled.T
    scores = np.zeros((1 + len(candidates), *sample.targets.shape))
    for f in range(FOLDS):
        held_out = np.flatnonzero(fold == f)
        rest = np.flatnonzero(fold != f)
        if len(held_out):
            part = _scores_of_fold(products, sample, rest, held_out, spread, candidates)
            scores[:, held_out] = part
    assessed = fold >= 0
    losses = [_log_loss(S, sample, assessed) for S in scores]
    best = int(np.argmin(losses))
    return None if best == 0 else candidates[best - 1]


def _folds(labels: Array) -> Array:
    """Folds that each hold a fifth of every class; -1 for rows of a class that has one.
    # (n,)
    """
    counts = np.bincount(labels)
    starts = np.cumsum(counts) - counts
    position = np.arange(len(labels)) - starts[labels]
    return np.where(counts[labels] > 1, position % FOLDS, -1)


def _scores_of_fold(
    products: Array,
    sample: Sample,
    rest: Array,
    held_out: Array,
    spread: float,
    candidates: Sequence[float],
) -> list[Array]:
    """Scores of the rows of a fold by the others: without a metric, and with that of
    each shrinkage, made of the others.  # each (held-out rows, t)

    With the products G of rows, deviations Z from class means and n rows, the inner
    products in the metric are G - G_Z (lam n I + Z Z')^-1 G_Z' (Woodbury's identity).
    """
    inner = products[np.ix_(rest, rest)]
    cross = products[np.ix_(held_out, rest)]
    squares = products[held_out, held_out]
    part = sample.part(rest)
    scores = [_scores(inner, cross, squares, part, spread)]
    centring = _centring(part.labels)
    inner_z = inner @ centring  # products of rows with deviations
    cross_z = cross @ centring
    within = centring @ inner_z
    mean = float(np.trace(within)) / len(rest)
    if mean <= 0:
        return scores * (1 + len(candidates))
    for shrinkage in candidates:
        ridge = within + shrinkage * mean * np.eye(len(rest))
        solved = np.linalg.solve(ridge, inner_z.T)
        solved_cross = np.linalg.solve(ridge, cross_z.T)
        in_metric = inner - inner_z @ solved
        cross_in_metric = cross - cross_z @ solved
        removed = np.einsum("ij,ji->i", cross_z, solved_cross)
        scores.append(
            _scores(in_metric, cross_in_metric, squares - removed, part, spread)
        )
    return scores


def _centring(labels: Array) -> Array:
    """The matrix that subtracts from each row the mean of its class.  # (n, n)"""
    same = labels[:, None] == labels
    return np.asarray(np.eye(len(labels)) - same / same.sum(axis=1))


def _kernel(
    squares: Array,
    lengths: Array,
    products: Array,
    scale: float,
) -> Array:
    """Kernels of rows with squared lengths and products.  # (n, m)"""
    distances = squares[:, None] + lengths - 2 * products
    return np.asarray(np.exp(-np.maximum(distances, 0) / scale))


def _scale(inner: Array, mass: Array) -> float:
    """Twice the variance of rows with these products, as in `Kernel`."""
    share = mass / mass.sum()
    variance = float(share @ np.diag(inner) - share @ inner @ share)
    return 2 * variance if variance > 0 else 1.0


def _noise(
    sample: Sample,
    spread: float,
    scale: float,
) -> Array:
    return np.asarray(sample.noise + spread * sample.spread / scale)


def _scores(
    inner: Array,
    cross: Array,
    squares: Array,
    part: Sample,
    spread: float,
) -> Array:
    """Scores of queries with the products `cross` by rows with the products `inner`.
    # (q, t)
    """
    scale = _scale(inner, part.mass)
    lengths = np.diag(inner)
    system = _kernel(lengths, lengths, inner, scale)
    system[np.diag_indices(len(inner))] += _noise(part, spread, scale)
    coefficients = np.linalg.solve(system, part.targets)
    return np.asarray(_kernel(squares, lengths, cross, scale) @ coefficients)


def _leave_one_out_loss(
    inner: Array,
    sample: Sample,
    spread: float,
    assessed: Array,
) -> float:
    """The loss of the prediction for each row by all others."""
    scale = _scale(inner, sample.mass)
    lengths = np.diag(inner)
    system = _kernel(lengths, lengths, inner, scale)
    system[np.diag_indices(len(inner))] += _noise(sample, spread, scale)
    inverse = np.linalg.inv(system)
    residual = (inverse @ sample.targets) / np.diag(inverse)[:, None]
    return _log_loss(sample.targets - residual, sample, assessed)


def _log_loss(
    scores: Array,
    sample: Sample,
    assessed: Array,
) -> float:
    """The mean log loss of rows at the best temperature, weighted by mass; the squared
    error of tags, whose scores are no shares of one.
    """
    S = scores[assessed]
    targets = sample.targets[assessed]
    share = sample.mass[assessed] / sample.mass[assessed].sum()
    if (targets.sum(axis=1) != 1).any():
        return float(share @ np.square(S - targets).mean(axis=1))
    losses = []
    for temperature in TEMPERATURES:
        likelihoods = (softmax(S / temperature) * targets).sum(axis=1)
        losses.append(-share @ np.log(np.maximum(likelihoods, MIN_LIKELIHOOD)))
    return float(min(losses))
