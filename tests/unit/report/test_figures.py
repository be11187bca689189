"""Figures of the page: their content, and that they are reproducible."""

import re

import numpy as np
import pytest

from imprint.collapse import gain_fit
from imprint.report import figures
from imprint.report.figures import Cloud, Panel, Point, Series, draw, interval, scatter


def lines(count):
    values = np.random.default_rng(0).normal(size=(count, 4, 3))
    return [
        Series(f"line {i}", [1, 2, 5, 10], *interval(v)) for i, v in enumerate(values)
    ]


def test_a_drawing_names_axes_panels_and_lines_and_repeats():
    panels = [
        Panel("left", lines(3), level=0.5, level_name="level"),
        Panel("right", lines(2)),
    ]
    svg = draw(panels, "across", "up", log_x=True)
    text = svg.decode()
    for word in ("left", "right", "across", "up", "line 0", "line 2", "level"):
        assert f">{word}<" in text
    assert svg == draw(panels, "across", "up", log_x=True)
    assert not re.search(r"\d\.\d{3}", text)


def test_lines_differ_in_more_than_colour():
    svg = draw([Panel("one", lines(8))], "x", "y").decode()
    strokes = {
        re.search(r"stroke: (#\w+)", s)[1]
        for s in re.findall(r'style="fill: none; stroke: #[^"]+width: 1.4[^"]*"', svg)
    }
    assert len(strokes) == 8


def test_a_legend_has_two_entries_per_panel_in_a_row():
    svg = draw([Panel("one", lines(8))], "x", "y", height=2.5).decode()
    assert f'height="{72 * (0.35 + 2.5 + 0.2 * 4):g}pt"' in svg


def test_a_line_has_markers_at_the_marked_points_only():
    def markers(marked):
        svg = draw(
            [Panel("one", [Series("a", [1, 2, 5], [3, 1, 2], marked=marked)])], "x", "y"
        ).decode()
        return svg.count("<use")

    assert markers(None) - markers([1]) == 2


def test_intervals_have_their_nominal_coverage():
    rng = np.random.default_rng(1)
    _, low, high = interval(rng.normal(size=(20_000, 3)))
    assert np.mean((low < 0) & (high > 0)) == pytest.approx(0.95, abs=0.01)


def test_points_lie_on_a_logarithmic_axis_with_their_line():
    x, y = [0.1, 1.0, 10.0], [1.0, 2.0, 3.5]
    points = [Point(name, name == "a", *at) for name in "ab" for at in zip(x, y)]
    svg = scatter([Cloud("here", points, gain_fit(x, y))], "NC1", "gain").decode()
    for word in ("here", "NC1", "gain", "a", "b"):
        assert f">{word}<" in svg


def test_lines_have_different_markers_and_keep_them_in_all_panels():
    looks = figures._looks([Panel("one", lines(5)), Panel("two", lines(8))])
    assert list(looks) == [f"line {i}" for i in range(8)]
    assert len({look["marker"] for look in looks.values()}) == 8


def test_points_of_one_name_share_colour_and_marker_and_some_are_hollow():
    points = [
        Point("a", True, 1, 2),
        Point("a", False, 3, 4),
        Point("b", True, 5, 6),
        Point("a", True, 7, 8),
    ]
    svg = scatter([Cloud("c", points)], "x", "y").decode()
    drawn = re.findall(r'style="fill: (\S+); stroke: (\S+); stroke-width: 1.2"', svg)
    blue, orange = "#0072b2", "#d55e00"
    assert drawn == [(blue, blue), (blue, blue), ("none", blue), (orange, orange)]


def test_an_axis_of_few_powers_of_ten_has_plain_labels():
    svg = scatter(
        [Cloud("c", [Point("a", True, 0.2, 1.0), Point("a", True, 3.0, 2.0)])], "x", "y"
    ).decode()
    assert {">0.2<", ">0.5<", ">1<", ">2<"} <= {
        f">{text}<" for text in re.findall(r"<text[^>]*>([^<]+)<", svg)
    }
