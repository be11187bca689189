"""Temperature scaling: probabilities that match the frequencies of out-of-fold predictions."""

from typing import Any

import numpy as np

from imprint.core.arrays import is_torch
from imprint.core.types import Array
from imprint.kernels.softmax import softmax

SMALLEST = 1e-37
"""The smallest probability whose logarithm is taken; float32 can still represent it."""
LARGEST_FLOOR = 0.99
FLOOR_WITHOUT_ROWS = 0.5
UNEXPLAINED_ROWS, EXPLAINED_ROWS = 0.1, 20
"""The beta prior of the floor, as numbers of rows that only the floor explains, and that the scores explain."""
LOG_TEMPERATURES = (-3.0, 3.0)


def scale(P: Any, temperature: float, floor: float) -> Any:
    """Probabilities to the power 1 / temperature, renormalised and mixed with the uniform floor.  # (n, C) float64"""
    logs = P.double().clamp(SMALLEST).log() if is_torch(P) else np.log(np.maximum(P, SMALLEST, dtype=np.float64))
    return (1 - floor) * softmax(logs / temperature) + floor / P.shape[1]


def fit_temperature(P: Array, true: Array, weight: Array, deviation: float = 1.0) -> tuple[float, float]:
    """The temperature and floor with the largest posterior probability.  # (n, C), (n,), (n,)

    The logarithm of the temperature has a normal prior with mean 0 and this standard deviation, and the floor a beta
    prior: few rows hardly change the aggregator's probabilities, many determine them.
    """
    from scipy.optimize import minimize_scalar

    if not len(true):
        return 1.0, FLOOR_WITHOUT_ROWS
    logs, uniform = np.log(np.maximum(P, SMALLEST)), 1 / P.shape[1]
    weight = weight * (len(weight) / max(weight.sum(), 1))

    def loss(log_temperature: float) -> tuple[float, float]:
        likelihoods = softmax(logs / np.exp(log_temperature))[np.arange(len(true)), true]
        floor = _best_floor(likelihoods, uniform, weight)
        log_likelihood = float(weight @ np.log((1 - floor) * likelihoods + floor * uniform))
        log_prior = UNEXPLAINED_ROWS * np.log(floor) + EXPLAINED_ROWS * np.log1p(-floor)
        return (log_temperature / deviation) ** 2 / 2 - log_likelihood - log_prior, floor

    best = minimize_scalar(lambda t: loss(t)[0], bounds=LOG_TEMPERATURES, method="bounded").x
    return float(np.exp(best)), loss(best)[1]


def _best_floor(likelihoods: Array, uniform: float, weight: Array) -> float:
    """The floor where the slope of the log posterior is zero, by bisection; the slope decreases."""
    low, high = 0.0, LARGEST_FLOOR
    for _ in range(40):
        middle = (low + high) / 2
        slopes = (uniform - likelihoods) / ((1 - middle) * likelihoods + middle * uniform)
        slope = weight @ slopes + UNEXPLAINED_ROWS / middle - EXPLAINED_ROWS / (1 - middle)
        low, high = (middle, high) if slope > 0 else (low, middle)
    return high


def calibration_error(P: Array, true: Array, bins: int = 15) -> float:
    """The expected calibration error: mean gap between confidence and accuracy over `bins` equal ranges.

    >>> calibration_error(np.array([[0.9, 0.1], [0.9, 0.1]]), np.array([0, 1]))
    0.4
    """
    confidence, right = P.max(axis=1).astype(np.float64), P.argmax(axis=1) == true
    bin_of = np.minimum((confidence * bins).astype(int), bins - 1)
    gaps = np.bincount(bin_of, right - confidence, minlength=bins)
    return float(np.round(np.abs(gaps).sum() / len(P), 12))
