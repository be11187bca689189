"""The parts of a method and their defaults, readable without NumPy."""

PARTS = ("norm_pre", "generator", "norm_post", "norm_inf", "aggregator")
DEFAULT = {
    "norm_pre": "l2",
    "generator": "kmeans(k=50)",
    "norm_post": "none",
    "norm_inf": "l2",
    "aggregator": "kernel",
}
"""The default method, everywhere. docs/kernel.md shows what k costs and gains."""
