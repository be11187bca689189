"""Where everything in a critical-difference diagram goes, in points from the top left. Pure arithmetic."""

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from imprint.stats import Comparison

MARGIN, GAP = 12.0, 5.0  # around the page; between the end of a line, the rank and the name
LINE, LEADING = 16.0, 11.5  # height of the first line of a label and of every further one
APART = 7.0  # least distance between the lines of two methods
REACH = 2.5  # how far a bar goes beyond its outer members; less than half of APART
BAR = 8.0  # height of one row of bars
SPREAD = 8.0  # height below the scale in which lines move apart
WIDEST = 44  # characters in one line of a name


@dataclass(frozen=True)
class Label:
    """One method: its mark on the scale, its line down through the bars, its text beside the scale."""

    text: tuple[str, ...]
    rank: float
    mark: float  # x on the scale, exact
    foot: float  # x of the line down, moved aside where lines would touch
    end: float  # x where the line ends
    rank_x: float
    name_x: float
    y: float
    left: bool


@dataclass(frozen=True)
class Bar:
    """One group: a bar across the lines of its members and of nobody else."""

    start: float
    end: float
    y: float


@dataclass(frozen=True)
class DiagramLayout:
    """The whole diagram; `first` and `last` are where the scale begins and ends."""

    width: float
    height: float
    first: float
    last: float
    scale_y: float
    labels: tuple[Label, ...]
    bars: tuple[Bar, ...]


def lay_out(
    found: Comparison, measure: Callable[[str], float], *, top: float, bottom: float, least: float
) -> DiagramLayout:
    """Place a comparison between `top` and `bottom` points of other text, at least `least` points wide.

    `measure` gives the width of a text. The better half of the methods stands on the left, the outermost highest,
    so that no line crosses another.
    """
    order, m = found.order, len(found.order)
    texts = [tuple(textwrap.wrap(name, WIDEST)) or (name,) for name in order]
    widths = [max(map(measure, text)) for text in texts]
    half, number = (m + 1) // 2, max(measure(f"{rank:.2f}") for rank in found.ranks)
    beside = MARGIN + number + 3 * GAP
    length = max(260.0, 2.4 * APART * (m - 1))
    needed = beside + max(widths[:half]) + length + beside + max(widths[half:])
    first = beside + max(widths[:half]) + max(0.0, least + 2 * MARGIN - needed) / 2
    last, scale_y = first + length, top + MARGIN
    marks = [first + (found.rank(name) - 1) / (m - 1) * length for name in order]
    feet = _apart(marks)
    bars, below = _bars(found.groups, dict(zip(order, feet)), scale_y + SPREAD + BAR)
    ys = _stack(texts[:half], below) + _stack(texts[half:][::-1], below)[::-1]
    labels = []
    for i, name in enumerate(order):
        out, end = (-1, first - GAP) if i < half else (1, last + GAP)
        rank_x, name_x = end + out * GAP, end + out * (number + 2 * GAP)
        rank = found.rank(name)
        labels.append(Label(texts[i], rank, marks[i], feet[i], end, rank_x, name_x, ys[i], i < half))
    deepest = max(label.y + LEADING * (len(label.text) - 1) for label in labels)
    width = max(needed, least + 2 * MARGIN)
    return DiagramLayout(width, deepest + LINE + bottom, first, last, scale_y, tuple(labels), bars)


def _apart(marks: Sequence[float]) -> list[float]:
    """The positions nearest to the marks that keep their order and a distance of APART."""
    steps = APART * np.arange(len(marks))
    from sklearn.isotonic import isotonic_regression

    moved: list[float] = (isotonic_regression(np.array(marks) - steps) + steps).tolist()
    return moved


def _bars(groups: Sequence[tuple[str, ...]], feet: dict[str, float], y: float) -> tuple[tuple[Bar, ...], float]:
    """Each bar in the highest row where it is clear of the others, and the height below all rows."""
    taken: list[float] = []
    bars = []
    for group in groups:
        start, end = feet[group[0]] - REACH, feet[group[-1]] + REACH
        row = next((r for r, x in enumerate(taken) if x + APART < start), len(taken))
        taken[row : row + 1] = [end]
        bars.append(Bar(start, end, y + row * BAR))
    return tuple(bars), y + len(taken) * BAR + LINE / 2


def _stack(texts: Sequence[tuple[str, ...]], top: float) -> list[float]:
    """The height of the first line of each label, from the highest down."""
    heights = [LINE + LEADING * (len(text) - 1) for text in texts]
    return [top + sum(heights[:i]) for i in range(len(texts))]


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
