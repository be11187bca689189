"""The layout of a critical-difference diagram, in points from the top left, and its caption."""

import textwrap
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from imprint.stats import Comparison

MARGIN, GAP = 12.0, 5.0  # around the page; between the end of a line, the rank and the name
LINE, LEADING = 16.0, 11.5  # height of the first line of a label and of every further one
APART = 7.0  # minimum distance between the lines of two methods
REACH = 2.5  # how far a bar extends beyond its outer members; less than half of APART
BAR = 8.0  # height of one row of bars
SPREAD = 8.0  # height below the scale in which lines spread out
WIDEST = 44  # characters in one line of a name


class Label(NamedTuple):
    """One method: its mark on the scale, its line down through the bars, and its text."""

    text: tuple[str, ...]
    rank: float
    mark: float  # x on the scale
    foot: float  # x of the line down, moved where lines would touch
    end: float  # x where the line ends
    rank_x: float
    name_x: float
    y: float
    left: bool


class Bar(NamedTuple):
    """One group: a bar across the lines of its members."""

    start: float
    end: float
    y: float


class DiagramLayout(NamedTuple):
    """The whole diagram; the scale extends from `first` to `last`."""

    width: float
    height: float
    first: float
    last: float
    scale_y: float
    labels: tuple[Label, ...]
    bars: tuple[Bar, ...]


def lay_out(
    comparison: Comparison, measure: Callable[[str], float], *, top: float, bottom: float, least: float
) -> DiagramLayout:
    """Lay out a comparison with `top` and `bottom` points left for other text, at least `least` points wide.

    `measure` returns the width of a text. The better half of the methods is on the left, the outermost ones highest, so
    that no lines cross.
    """
    from sklearn.isotonic import isotonic_regression

    order, m = comparison.order, len(comparison.order)
    texts = [tuple(textwrap.wrap(name, WIDEST)) or (name,) for name in order]
    widths = [max(map(measure, text)) for text in texts]
    half, number = (m + 1) // 2, max(measure(f"{rank:.2f}") for rank in comparison.ranks)
    margin = MARGIN + number + 3 * GAP
    length = max(260.0, 2.4 * APART * (m - 1))
    needed = margin + max(widths[:half]) + length + margin + max(widths[half:])
    first = margin + max(widths[:half]) + max(0.0, least + 2 * MARGIN - needed) / 2
    last, scale_y = first + length, top + MARGIN
    # marks on the scale; below it, the nearest positions of the lines that keep their distance
    marks = [first + (comparison.rank(name) - 1) / (m - 1) * length for name in order]
    steps = APART * np.arange(m)
    feet = (isotonic_regression(np.array(marks) - steps) + steps).tolist()
    # bars across the lines, each in the highest row where it overlaps no other
    foot, top_bar = dict(zip(order, feet)), scale_y + SPREAD + BAR
    ends = [(foot[group[0]] - REACH, foot[group[-1]] + REACH) for group in comparison.groups]
    rows = lanes(ends, APART)
    bars = tuple(Bar(start, end, top_bar + row * BAR) for (start, end), row in zip(ends, rows))
    below = top_bar + (max(rows, default=-1) + 1) * BAR + LINE / 2
    # names, below all bars
    ys = _stack(texts[:half], below) + _stack(texts[half:][::-1], below)[::-1]
    labels = []
    for i, name in enumerate(order):
        out, end = (-1, first - GAP) if i < half else (1, last + GAP)
        xs = marks[i], feet[i], end, end + out * GAP, end + out * (number + 2 * GAP)
        labels.append(Label(texts[i], comparison.rank(name), *xs, ys[i], i < half))
    deepest = max(label.y + LEADING * (len(label.text) - 1) for label in labels)
    width = max(needed, least + 2 * MARGIN)
    return DiagramLayout(width, deepest + LINE + bottom, first, last, scale_y, tuple(labels), bars)


def lanes(intervals: Sequence[tuple[float, float]], gap: float = 0.0) -> list[int]:
    """For each interval, the first lane in which it starts more than `gap` after the end of the last one there.

    >>> lanes([(0, 3), (1, 2), (4, 5)])
    [0, 1, 0]
    """
    ends: list[float] = []
    chosen = []
    for start, end in intervals:
        lane = next((i for i, reached in enumerate(ends) if reached + gap < start), len(ends))
        ends[lane : lane + 1] = [end]
        chosen.append(lane)
    return chosen


def _stack(texts: Sequence[tuple[str, ...]], top: float) -> list[float]:
    """The y of the first line of each label, from the top down."""
    heights = [LINE + LEADING * (len(text) - 1) for text in texts]
    return [top + sum(heights[:i]) for i in range(len(texts))]


def caption(comparison: Comparison) -> list[str]:
    """The test, the meaning of the bars, and the pairs that bars cannot join; a line each."""
    n, p, alpha = comparison.instances, comparison.friedman.p, f"α = {comparison.alpha:g}"
    tested = f"{n} instance{'s' if n > 1 else ''}; Friedman p = {p:.2g}"
    if len(comparison.names) > 2 and p > comparison.alpha:
        return [tested, f"The Friedman test finds no difference at {alpha}: one group"]
    bars = "Bars join methods that cannot be told apart" if comparison.groups else "No bars: neighbours differ"
    apart = _not_joined(comparison)
    pairs = f"{apart} pair{'s' if apart > 1 else ''}"
    rest = [f"Not joined: {pairs} that cannot be told apart, with a differing method in between"] if apart else []
    return [tested, f"{bars} (Wilcoxon signed-rank, Holm, {alpha})", *rest]


def _not_joined(comparison: Comparison) -> int:
    """The number of pairs that do not differ significantly but share no group."""
    groups = [set(group) for group in comparison.groups]
    alike = [{pair.first, pair.second} for pair in comparison.pairs if not pair.significant]
    return sum(not any(two <= group for group in groups) for two in alike)


def labelled_ranks(m: int) -> list[int]:
    """The ranks on a scale of m methods that get a number."""
    step = next(step for step in (1, 2, 5, 10, 20, 50, 100, m) if m / step <= 10)
    return [rank for rank in range(1, m + 1) if rank == 1 or rank % step == 0]
