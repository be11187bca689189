"""Accuracy over k for "d in 1", embeddings not normalised before generation."""

from imprint.paper.curves import Curves

artefact = Curves(
    title='"d in 1" without normalisation before generation',
    where="Figure A.6a",
    order=240,
    method=lambda k: f"none / kmeans(k={k}) / l2 / l2 / max",
    what="k-means, norm_pre none, else L2",
    kind="pre_none",
)
