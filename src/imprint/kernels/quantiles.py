"""Many quantiles of one pool of values."""

import numpy as np

from imprint.core.types import Array


def quantiles(values: Array, q: Array) -> Array:
    """Linearly interpolated quantiles: the numbers of `numpy.quantile`, from one sort instead of many selections.

    >>> quantiles(np.array([3.0, 1.0, 2.0]), np.array([0.25, 0.5, 1.0]))
    array([1.5, 2. , 3. ])
    """
    ordered = np.sort(values, axis=None)
    place = q * (len(ordered) - 1)
    low = place.astype(np.intp)
    share = place - low
    below, above = ordered[low], ordered[np.minimum(low + 1, len(ordered) - 1)]
    step = above - below
    return np.asarray(np.where(share < 0.5, below + step * share, above - step * (1 - share)))
