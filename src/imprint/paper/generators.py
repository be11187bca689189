"""The generators that the paper compares, as rows of a table."""

from collections.abc import Callable, Iterable, Mapping, Sequence

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
    return _rows(published, [k for k in reversed(K) if k <= most], every_norm)


def fewer_rows(published: Mapping[str, tuple[float, float]], most: int) -> tuple[Row, ...]:
    """Every generator with 5 or 20 proxies, at most so many, under the norms that leave directions alone."""
    return _rows(
        published, [k for k in (20, 5) if k <= most], lambda text: [m for m in every_norm(text) if "quantile" not in m]
    )


def _rows(
    published: Mapping[str, tuple[float, float]], ks: Sequence[int], norms: Callable[[str], Iterable[str]]
) -> tuple[Row, ...]:
    found = []
    for label, text in TEXTS.items():
        generators = dict.fromkeys(text.format(k=k) for k in ks)
        methods = tuple(m for generator in generators for m in norms(generator))
        found.append(Row(label, methods, *published.get(label, (None, None))))
    return tuple(found)
