"""Neural collapse: how closely embeddings cluster around their class means, as
functions of (X, y).

>>> from imprint.collapse import nc1
>>> round(nc1([[0.0], [2], [4], [6]], ["cat", "cat", "dog", "dog"]), 12)
0.125
"""

from imprint.collapse.accumulator import Accumulator, SecondPass
from imprint.collapse.functions import (
    GainFit,
    cdnv,
    gain_fit,
    nc1,
    nc2,
    nc3,
    nc4,
    vci,
)
from imprint.collapse.metrics import NC2, Collapse

__all__ = [
    "NC2",
    "Accumulator",
    "Collapse",
    "GainFit",
    "SecondPass",
    "cdnv",
    "gain_fit",
    "nc1",
    "nc2",
    "nc3",
    "nc4",
    "vci",
]
