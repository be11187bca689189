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

    >>> import numpy as np
    >>> earlier = np.array([[10.0, 20.0, 30.0, 40.0]])
    >>> Quantile().apply(np.array([[5.0, 1.0, 9.0, 2.0]]), earlier).tolist()
    [[28.75, 13.75, 36.25, 21.25]]
    """

    # The order of other rows than proxies is not defined.
    positions = ("post",)
    uses_reference = True

    def apply(
        self,
        X: Array,
        reference: Array | None = None,
    ) -> Array:
        if reference is None or len(reference) == 0:
            return X
        d = X.shape[1]
        # The middle of the i-th of d equal parts of the distribution.
        levels = (np.arange(d) + 0.5) / d
        values = np.sort(reference, axis=None)
        target = quantiles(values, levels)
        # The smallest value of a row has rank 0 and takes the first quantile.
        matched = target.astype(X.dtype)[ranks(X)]
        return np.asarray(matched)
