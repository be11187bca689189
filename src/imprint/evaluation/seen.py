"""Whether a model is asked about what it was made of."""

import numpy as np

from imprint.core.types import Array
from imprint.evaluation.duplicates import SAME
from imprint.imprinter import Imprinter
from imprint.kernels.neighbours import nearest
from imprint.kernels.rows import unit_rows


def seen_before(model: Imprinter, X: Array) -> int:
    """How many rows the model remembers from training; it keeps only some, so there may be more."""
    shelves = model.learnt.shelves.values()
    if not shelves:
        return 0
    kept = unit_rows(np.concatenate([shelf.X for shelf in shelves]).astype(np.float64))
    distances, _ = nearest(unit_rows(X.astype(np.float64)), kept, 1)
    return int(np.sum(distances[:, 0] <= SAME))
