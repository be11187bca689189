"""One step of the farthest-point traversal."""

from imprint.core.types import Array
from imprint.kernels.compiled.jit import jit
from imprint.kernels.compiled.products import squared_distance


@jit
def approach(X: Array, row: int, nearest: Array) -> None:
    """Lower every squared distance to that of the given row."""
    for i in range(X.shape[0]):
        nearest[i] = min(nearest[i], squared_distance(X, i, X, row))
