"""How the gain of several proxies per class grows with neural collapse."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from imprint.collapse.rows import as_array
from imprint.core.errors import ParameterError


@dataclass(frozen=True)
class GainFit:
    """Rank correlation, and the line gain = intercept + slope * log10(NC1)."""

    n: int
    spearman: float
    p_value: float
    slope: float
    intercept: float
    r2: float

    def predict(self, nc1: float) -> float:
        """The gain on the line."""
        return float(self.intercept + self.slope * np.log10(nc1))


def gain_fit(nc1_values: Any, gains: Any) -> GainFit:
    """Fit the gains in accuracy (such as k = 5 over k = 1) of several tasks to their NC1.

    Spearman's rank correlation with its two-sided p-value (Student's t, ties averaged), and ordinary least
    squares of the gain on log10(NC1) with the share of variance explained.

    >>> fit = gain_fit([0.1, 1, 10, 100], [1, 3, 5, 7])
    >>> fit.spearman, round(fit.slope, 6), round(fit.intercept, 6), round(fit.r2, 6)
    (1.0, 2.0, 3.0, 1.0)
    >>> round(fit.predict(1000), 6)
    9.0
    """
    from scipy import stats

    call = "gain_fit(nc1_values, gains)"
    x, gain = as_array(nc1_values), as_array(gains)
    if x.ndim != 1 or x.shape != gain.shape or len(x) < 3:
        raise ParameterError(
            f"{call}: both must be lists of the same number of values, 3 or more, got {x.shape} and {gain.shape}."
        )
    if x.dtype.kind not in "iuf" or gain.dtype.kind not in "iuf":
        raise ParameterError(f"{call}: both must hold real numbers, got {x.dtype} and {gain.dtype}.")
    x, gain = x.astype(np.float64), gain.astype(np.float64)
    if not (np.isfinite(x).all() and np.isfinite(gain).all() and (x > 0).all()):
        raise ParameterError(f"{call}: all values must be finite and nc1_values positive.")
    if np.ptp(x) == 0 or np.ptp(gain) == 0:
        raise ParameterError(f"{call}: neither may be constant, a correlation is then not defined.")
    rank, line = stats.spearmanr(x, gain), stats.linregress(np.log10(x), gain)
    return GainFit(
        n=len(x),
        spearman=float(rank.statistic),
        p_value=float(rank.pvalue),
        slope=float(line.slope),
        intercept=float(line.intercept),
        r2=float(line.rvalue**2),
    )
