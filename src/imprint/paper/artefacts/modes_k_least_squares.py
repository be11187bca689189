"""Accuracy over k for "d in 1", k-least-squares."""

from imprint.paper.curves import Curves
from imprint.paper.norms import bare

artefact = Curves(
    title='"d in 1" with k-least-squares',
    where="Figure A.6b",
    order=245,
    method=lambda k: bare(f"k_least_squares(k={k}, reg={{reg}})"),
    what="k-least-squares, nothing normalised",
    kind="k_least_squares",
)
