from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from imprint.core.types import Array
from imprint.kernels.quantiles import quantiles, ranks, values_at
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
        target = quantiles(reference, (np.arange(X.shape[1]) + 0.5) / X.shape[1]).astype(X.dtype)
        out = np.empty_like(X)
        values_at(ranks(X), target, out)
        return out
