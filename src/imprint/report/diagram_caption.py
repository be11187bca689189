"""The words below a critical-difference diagram."""

from imprint.stats import Comparison


def caption(comparison: Comparison) -> list[str]:
    """What was tested, what the bars mean, and what they cannot show; a line each."""
    n, p, alpha = comparison.instances, comparison.friedman.p, f"α = {comparison.alpha:g}"
    tested = f"{n} instance{'s' if n > 1 else ''}; Friedman p = {p:.2g}"
    if len(comparison.names) > 2 and p > comparison.alpha:
        return [tested, f"The Friedman test finds no difference at {alpha}: one group"]
    bars = "Bars join methods that cannot be told apart" if comparison.groups else "No bars: neighbours differ"
    apart = _alike_but_apart(comparison)
    pairs = f"{apart} pair{'s' if apart > 1 else ''}"
    rest = [f"Not joined: {pairs} that cannot be told apart, with a differing method in between"] if apart else []
    return [tested, f"{bars} (Wilcoxon signed-rank, Holm, {alpha})", *rest]


def _alike_but_apart(comparison: Comparison) -> int:
    """How many pairs cannot be told apart and yet share no group."""
    groups = [set(group) for group in comparison.groups]
    alike = [{pair.first, pair.second} for pair in comparison.pairs if not pair.significant]
    return sum(not any(two <= group for group in groups) for two in alike)
