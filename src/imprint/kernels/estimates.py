"""Which class has the largest inner product, from products with rows that are like those in question.

A row w is a line through another row p: w = slope p + level + e, where e is orthogonal to p and to constants. So for
a query t, with |.|' for lengths about the mean,

    t.w = slope t.p + level sum(t) + t.e    and    |t.e| <= |e| sqrt(|t|'^2 - (t.p)'^2 / |p|'^2):

what is known of t.p tells how much of t is left for e to meet. Most rows of most classes are out of the question at
once; only the others are multiplied.
"""

from typing import NamedTuple

import numpy as np

from imprint.core.types import Array
from imprint.kernels.rows import squared_norms

DRIFT = 4e-5
"""What float32 sums may be wrong by, as a share of the squared lengths that go in; more than they are."""
SLACK = 1e-5
"""What float rounding may add to a product, as a share of the two lengths; more than it does."""


def lines(P: Array, W: Array, blur: float) -> Array | None:
    """How every row of `W` follows from that of `P`: slope, level, length of the rest, what `settle` needs of `P`.

    None where the rest is on average more than `blur` times as long as the rows, or rows are too long or too short.
    """
    from imprint.kernels.compiled.estimates import relate

    found = np.empty((6, len(P)), dtype=np.float32)
    relate(P, W, found)
    rest, length = found[2], found[5]
    return found if _are_moderate(length) and rest.sum() <= blur * length.sum() else None


def _are_moderate(lengths: Array) -> bool:
    """Whether their squares and products can be held; zeros can."""
    return bool(((lengths == 0) | ((lengths > 1e-6) & (lengths < 1e6))).all())


def shapes(Q: Array) -> Array | None:
    """What `settle` needs of queries; None where products of float32 might overflow or vanish.  # (4, q)

    The mean; `a` and `b` so that `a - b x` is at least the square root of the squared length about it less x (a
    tangent, close where half of the length is left); room for rounding.
    """
    squared = squared_norms(Q)
    if not _are_moderate(np.sqrt(squared)):
        return None
    mean = Q.mean(axis=1, dtype=np.float64)
    about = np.maximum(squared - Q.shape[1] * mean**2, 0)
    half = np.sqrt(about) / 2
    b = np.divide(1, 2 * half, out=np.zeros_like(half), where=half > 0)
    a = about * (1 + DRIFT) * b + half / 2
    return np.array([mean, a, b, SLACK * np.sqrt(squared)], dtype=np.float32)


class Likes(NamedTuple):
    """Rows of all classes but the first in several decisions, and rows that they are like."""

    edges: Array  # (E, C) where in `rows` those of each class begin and end
    rows: Array
    at: Array  # where among products those with the row that each is like stand; decision after decision
    lines: Array  # the lines through these rows, in the same order


def settle(
    products: Array, columns: Array, likes: Likes, Q: Array, shapes: Array, bests: Array, room: Array, scores: Array,
    starts: Array, width: int,
) -> None:  # fmt: skip
    """Fill in scores by which queries decide as by their largest products with the rows of classes.

    `products` are those with queries `Q`, of which the `columns` are in question. In decision e the first class has the
    scores from `scores[bests[e]]` on, one for each of `Q`; class c gets those from `scores[starts[e] + c * width]` on,
    one for each query in question, the first class too. Where two classes come near each other both scores are true,
    elsewhere the largest is the right one's. `room` is that of `room_for` the rows of one decision.
    """
    from imprint.kernels.compiled import estimates as compiled

    compiled.settle(products, columns, *likes, Q, shapes, bests, room, scores, starts, width)


def room_for(rows: int) -> Array:
    """What `settle` notes things down in, to be used again and again."""
    from imprint.kernels.compiled.estimates import TILE

    return np.empty((rows, TILE), dtype=np.float32)
