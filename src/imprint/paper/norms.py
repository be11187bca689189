"""The settings of the three norms that the paper compares."""

NORMS = tuple(
    (pre, post, inf)
    for pre, inf in (("none", "none"), ("none", "l2"), ("l2", "l2"))
    for post in ("none", "l2", "quantile")
)


def every_norm(generator: str, aggregator: str = "max") -> tuple[str, ...]:
    """A generator under all nine settings.

    >>> len(every_norm("mean")), every_norm("mean")[0]
    (9, 'none / mean / none / none / max')
    """
    return tuple(f"{pre} / {generator} / {post} / {inf} / {aggregator}" for pre, post, inf in NORMS)


def cosine(generator: str, aggregator: str = "max") -> str:
    """A generator with L2 throughout."""
    return f"l2 / {generator} / l2 / l2 / {aggregator}"


def bare(generator: str, aggregator: str = "max") -> str:
    """A generator with nothing normalised."""
    return f"none / {generator} / none / none / {aggregator}"
