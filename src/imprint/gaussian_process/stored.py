"""A solved system as named arrays of a model file.

The factor of the system would take more space than all proxies. That of the proxies
that determine the doubt is small, and a first prediction needs it.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from imprint.core.arrays import Array, State, to_numpy
from imprint.core.errors import require
from imprint.gaussian_process.cholesky import Factor
from imprint.gaussian_process.placed import PlacedRows
from imprint.gaussian_process.posterior import (
    Posterior,
    restore,
    witnesses_of,
)

WITNESS = "witness_"
SYSTEM_NAMES = ("coefficients", "noise", "centre", "max_exponent")
# Of the space of the proxies: a larger factor would make the file of narrow embeddings
# twice as large, and takes 0.2 s to compute.
MAX_FACTOR_SHARE = 0.25
FACTOR_NAMES = ("factor", "factor_blocks")
STORED_NAMES = (
    *SYSTEM_NAMES,
    *(f"{WITNESS}{name}" for name in SYSTEM_NAMES if name != "noise"),
    *(f"{WITNESS}{name}" for name in FACTOR_NAMES),
)


def system_to_arrays(system: Posterior) -> State:
    """The arrays of a system without removed rows."""
    arrays = _numbers(system)
    witnesses = system.witnesses
    space_of_proxies = len(system.labels) * system.centre.nbytes
    space_of_factor = 4 * len(witnesses.labels) ** 2  # float64, half of a square
    if witnesses is not system and (
        space_of_factor <= MAX_FACTOR_SHARE * space_of_proxies
    ):
        numbers = _numbers(witnesses)
        del numbers["noise"]  # that of some rows of the system
        numbers |= _factor_to_arrays(witnesses.factor)
        arrays |= {f"{WITNESS}{name}": array for name, array in numbers.items()}
    return arrays


def _numbers(system: Posterior) -> State:
    return {
        "coefficients": system.coefficients,
        "noise": to_numpy(system.noise),
        "centre": to_numpy(system.centre).astype(np.float64),
        "max_exponent": np.array([system.max_exponent]),
    }


def _factor_to_arrays(factor: Factor) -> State:
    """The blocks of a factor one after the other, and the rows of each."""
    parts = []
    for left, inverse in zip(factor.left, factor.inverses):
        parts.append(to_numpy(left).ravel())
        parts.append(to_numpy(inverse).ravel())
    lengths = [len(inverse) for inverse in factor.inverses]
    return {"factor": np.concatenate(parts), "factor_blocks": np.array(lengths)}


def system_from_arrays(
    arrays: State,
    take: Callable[[Any], Array],
    labels: Array,
    rate: float,
    outputs: int,
    dtype: Any,
) -> Posterior:
    """The system from the arrays of `system_to_arrays`.

    `take` gives the rows, in the metric and of the type `dtype`, at some indices.
    Raises KeyError or ValueError for arrays that do not fit together.
    """
    count = len(labels)
    noise = arrays["noise"]
    require(noise.shape == (count,) and bool((noise > 0).all()))
    system = _system(arrays, take, labels, noise, rate, outputs, dtype, None)
    if f"{WITNESS}factor" not in arrays:
        return system
    chosen = witnesses_of(labels, system.order)

    def take_witnesses(rows: Any) -> Array:
        return take(chosen[rows])

    stored = {
        name.removeprefix(WITNESS): array
        for name, array in arrays.items()
        if name.startswith(WITNESS)
    }
    factor = _factor_from_arrays(stored, len(chosen))
    no_classes = np.zeros(len(chosen), dtype=np.intp)  # doubt needs no classes
    witnesses = _system(
        stored,
        take_witnesses,
        no_classes,
        noise[chosen],
        rate,
        1,
        dtype,
        factor,
    )
    return system.with_witnesses(witnesses)


def _system(
    arrays: State,
    take: Callable[[Any], Array],
    labels: Array,
    noise: Array,
    rate: float,
    outputs: int,
    dtype: Any,
    factor: Factor | None,
) -> Posterior:
    """A system over some rows."""
    coefficients = arrays["coefficients"]
    require(coefficients.shape == (len(labels), outputs))
    require(arrays["max_exponent"].shape == (1,))
    rows = PlacedRows(len(labels), take, float(arrays["max_exponent"][0]))
    centre = arrays["centre"].astype(dtype)
    return restore(rows, labels, noise, rate, centre, coefficients, factor)


def _factor_from_arrays(arrays: State, count: int) -> Factor:
    """The factor from the arrays of `_factor_to_arrays`, as views."""
    lengths = arrays["factor_blocks"]
    require(lengths.ndim == 1 and lengths.dtype == np.int64)
    require(bool((lengths > 0).all()) and int(lengths.sum()) == count)
    values = arrays["factor"]
    lefts = []
    inverses = []
    start = 0
    position = 0
    for length in lengths.tolist():
        end_of_left = position + length * start
        end_of_inverse = end_of_left + length * length
        require(end_of_inverse <= len(values))
        lefts.append(values[position:end_of_left].reshape(length, start))
        inverses.append(values[end_of_left:end_of_inverse].reshape(length, length))
        start += length
        position = end_of_inverse
    require(values.shape == (position,))
    return Factor(tuple(lefts), tuple(inverses))
