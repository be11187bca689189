from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from imprint.core.types import Array
from imprint.kernels.quantiles import quantiles, ranks, targets_in_turn
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
        return _spread(X, ranks(X), quantiles(reference, (np.arange(X.shape[1]) + 0.5) / X.shape[1]))

    def prepare(self, X: Array) -> Array:
        return ranks(X)

    def apply_in_turn(self, parts: Sequence[Array], prepared: Sequence[Array] | None = None) -> list[Array]:
        """The same with less sorting: after the first class every proxy of a class has the same values."""
        later = prepared[1:] if prepared else [ranks(X) for X in parts[1:]]
        targets = targets_in_turn(parts[0], [len(X) for X in parts[1:]])
        return [parts[0], *map(_spread, parts[1:], later, targets)]


def _spread(X: Array, places: Array, target: Array) -> Array:
    """The values of every row, from smallest to largest, become the target's."""
    return np.asarray(target.astype(X.dtype, copy=False).take(places, mode="clip"))
