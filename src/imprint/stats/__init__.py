"""Compare methods over many instances: average ranks, Friedman, Wilcoxon with Holm,
groups. No drawing.
"""

from imprint.stats.comparison import Comparison, Pair, compare
from imprint.stats.rank_tests import (
    Friedman,
    friedman,
    holm,
    rank_rows,
    wilcoxon,
)

__all__ = [
    "Comparison",
    "Friedman",
    "Pair",
    "compare",
    "friedman",
    "holm",
    "rank_rows",
    "wilcoxon",
]
