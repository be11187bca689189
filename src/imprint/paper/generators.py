"""The generators that the paper compares, as rows of a table."""

from collections.abc import Mapping

from imprint.paper.norms import every_norm
from imprint.paper.tables import Row

K = (1, 2, 3, 5, 10, 20)
KMEDOIDS = "kmedoids, alternate"
TEXTS = {
    "kmeans": "kmeans(k={k})",
    KMEDOIDS: "kmedoids(k={k}, method='alternate')",
    "kmedoids": "kmedoids(k={k})",
    "mean": "mean",
    "covmax": "covmax(k={k})",
    "random": "random(k={k})",
    "fps": "fps(k={k})",
}
OTHERS = (KMEDOIDS, "mean", "covmax", "random", "fps")
"""What the paper sets k-means against; FasterPAM is an addition."""


def rows(published: Mapping[str, tuple[float, float]], most: int) -> tuple[Row, ...]:
    """Every generator with at most so many proxies, under all norms."""
    return tuple(
        Row(label, _candidates(text, most), *published.get(label, (None, None))) for label, text in TEXTS.items()
    )


def _candidates(text: str, most: int) -> tuple[str, ...]:
    every = (text.format(k=k) for k in reversed(K) if k <= most)
    return tuple(m for generator in dict.fromkeys(every) for m in every_norm(generator))
