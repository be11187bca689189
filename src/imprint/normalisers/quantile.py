from dataclasses import dataclass

import numpy as np

from imprint.core.arrays import Array
from imprint.kernels.quantiles import quantiles, ranks
from imprint.normalisers._base import Normaliser


@dataclass(frozen=True, kw_only=True)
class Quantile(Normaliser):
    """Match the values of each proxy to the quantiles of all proxies that were
    imprinted before it.

    The i-th smallest of the d values of a proxy, i = 0, ..., d - 1, becomes the
    quantile (i + 1/2) / d of all values of the earlier proxies, interpolated linearly.
    Equal values keep their order. The first class has no reference and does not change,
    so the result depends on the order in which classes are imprinted.
    """

    positions = ("post",)
    uses_reference = True

    def apply(self, X: Array, reference: Array | None = None) -> Array:
        if reference is None or len(reference) == 0:
            return X
        levels = (np.arange(X.shape[1]) + 0.5) / X.shape[1]
        target = quantiles(np.sort(reference, axis=None), levels).astype(X.dtype)
        return np.asarray(target[ranks(X)])
