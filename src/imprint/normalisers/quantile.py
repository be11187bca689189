from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from imprint.core.types import Array
from imprint.kernels.quantiles import Pool, quantiles, ranks
from imprint.normalisers._base import Normaliser


@dataclass(frozen=True, kw_only=True)
class Quantile(Normaliser):
    """Give every proxy the distribution of values that all proxies imprinted before it have.

    The d values of a proxy, from smallest to largest, become the quantiles (i + 1/2) / d of the reference pool,
    interpolated linearly; equal values keep their order. The first class has no reference and stays as it is.
    So the result depends on the order in which classes were imprinted.
    """

    positions: ClassVar[tuple[str, ...]] = ("post",)
    uses_reference: ClassVar[bool] = True

    def apply(self, X: Array, reference: Array | None = None) -> Array:
        if reference is None or len(reference) == 0:
            return X
        return _spread(ranks(X), quantiles(reference, _levels(X)), X.dtype)

    def prepare(self, X: Array) -> Array:
        return ranks(X)

    def apply_in_turn(self, parts: Sequence[Array], prepared: Sequence[Array] | None = None) -> list[Array]:
        """The same with less sorting: after the first class every proxy of a class has the same values."""
        done = [parts[0]]
        pool = Pool(parts[0])
        for X, places in zip(parts[1:], prepared[1:] if prepared else map(ranks, parts[1:])):
            target = pool.quantiles(_levels(X)).astype(X.dtype)
            done.append(_spread(places, target, X.dtype))
            pool.add(target, len(X))
        return done


def _levels(X: Array) -> Array:
    d = X.shape[1]
    return np.asarray((np.arange(d) + 0.5) / d)


def _spread(places: Array, target: Array, dtype: Any) -> Array:
    """The values of every row, from smallest to largest, become the target's."""
    return np.asarray(target.astype(dtype, copy=False).take(places, mode="clip"))
