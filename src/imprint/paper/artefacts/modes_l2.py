"""Accuracy over k for "d in 1", L2 throughout."""

from imprint.paper.curves import Curves
from imprint.paper.norms import cosine

artefact = Curves(
    title='Proxies per class for classes of several modes ("d in 1")',
    where="Figure 11b",
    order=100,
    method=lambda k: cosine(f"kmeans(k={k})"),
    what="k-means, L2 throughout",
    kind="l2",
    again=True,
)
