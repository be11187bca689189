"""The critical-difference diagram: layout and drawing."""

import re
import subprocess
import sys
from io import BytesIO
from itertools import combinations, pairwise

import matplotlib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from imprint.core.errors import FileError, MissingExtraError, ParameterError
from imprint.report import critical_difference, save_critical_difference
from imprint.report.critical_difference import LEADING, lanes, lay_out
from imprint.stats import compare


def example(methods=8, n=30, gap=0.3, seed=0, name="method {}"):
    rng = np.random.default_rng(seed)
    scores = np.round(rng.normal(size=(n, methods)) + gap * np.arange(methods), 1)
    return compare(scores, [name.format(j) for j in range(methods)])


comparisons = st.builds(
    example,
    st.integers(2, 30),
    st.integers(1, 20),
    st.sampled_from([0, 0.1, 0.5, 3]),
    st.integers(0, 99),
    st.sampled_from(
        [
            "m{}",
            "a rather long name, longer than one line of a label can hold, number {}",
        ]
    ),
)


@given(comparisons)
@settings(max_examples=60, deadline=None)
def test_a_bar_touches_the_lines_of_its_members_only(comparison):
    layout = lay_out(comparison)
    feet = dict(zip(comparison.order, layout.feet))
    assert len(layout.bars) == len(comparison.groups)
    for group, (start, end, _) in zip(comparison.groups, layout.bars):
        assert {
            name for name, x in feet.items() if start - 0.5 <= x <= end + 0.5
        } == set(group)


@given(comparisons)
@settings(max_examples=60, deadline=None)
def test_bars_and_names_do_not_overlap(comparison):
    layout = lay_out(comparison)
    for one, other in combinations(layout.bars, 2):
        assert one[2] != other[2] or one[1] + 5 < other[0] or other[1] + 5 < one[0]
    lowest_bar = max((y for _, _, y in layout.bars), default=0)
    half = (len(layout.names) + 1) // 2
    for side in (slice(half), slice(half, None)):
        column = sorted(
            (y, len(lines))
            for y, lines in zip(layout.heights[side], layout.names[side])
        )
        assert column[0][0] - lowest_bar >= 8
        for (above, lines), (below, _) in pairwise(column):
            assert below - (above + (lines - 1) * LEADING) >= 12
    assert -1e-6 <= min(layout.feet) <= max(layout.feet) <= layout.length + 1e-6


@given(comparisons)
@settings(max_examples=60, deadline=None)
def test_marks_are_exact_and_no_two_lines_cross(comparison):
    layout = lay_out(comparison)
    m = len(comparison.names)
    for name, mark in zip(comparison.order, layout.marks):
        assert 1 + mark / layout.length * (m - 1) == pytest.approx(
            comparison.rank(name)
        )
    assert all(right - left >= 6.99 for left, right in pairwise(layout.feet))
    left, right = layout.heights[: (m + 1) // 2], layout.heights[(m + 1) // 2 :]
    assert left == sorted(left)
    assert right == sorted(right, reverse=True)


@pytest.mark.parametrize(
    ("methods", "name"), [(2, "m{}"), (3, "m{}"), (7, "a long name " * 4 + "{}")]
)
def test_nothing_is_drawn_at_the_edge(methods, name):
    """Nothing is drawn at the edge, so nothing is cut off."""
    with Image.open(
        BytesIO(
            critical_difference(example(methods, name=name), "png", title="title " * 20)
        )
    ) as image:
        pixels = np.asarray(image.convert("L"))
    edge = 20
    inner = pixels[edge:-edge, edge:-edge]
    assert (pixels < 255).sum() == (inner < 255).sum() > 0


@pytest.mark.parametrize("methods", [2, 3, 8, 25, 60])
def test_svg_holds_every_name_and_rank_as_text(methods):
    comparison = example(methods)
    text = critical_difference(comparison, title="A < B & C").decode()
    shown = re.findall(r"<text[^>]*>([^<]*)</text>", text)
    assert set(comparison.names) <= set(shown)
    assert {f"{rank:.2f}" for rank in comparison.ranks} <= set(shown)
    assert "A &lt; B &amp; C" in shown
    assert len(re.findall(r"stroke: #0072b2", text)) == len(comparison.groups)


def test_names_are_never_read_as_formulas():
    text = critical_difference(compare([[1, 2]], ["a_$x^2$", "$\\frac$"])).decode()
    assert "a_$x^2$" in text
    assert "$\\frac$" in text


def test_the_caption_states_the_tests():
    unclear, clear = example(3, gap=0), example(3, gap=9)
    assert (
        "The Friedman test finds no difference at α = 0.05"
        in critical_difference(unclear).decode()
    )
    assert (
        "No bars: neighbours differ significantly ("
        in critical_difference(clear).decode()
    )
    assert "Not joined" not in critical_difference(clear).decode()
    assert (
        "Bars join methods that do not differ significantly"
        in critical_difference(example(8)).decode()
    )
    assert "1 instance; Friedman p" in critical_difference(example(3, n=1)).decode()


def test_the_caption_counts_pairs_that_no_bar_can_join():
    """a and c do not differ significantly, but b stands between them and differs from a."""
    step = np.arange(30)
    a, c = (
        np.where(step < 22, 0.5, -0.01),
        np.where(step < 9, 5.0, np.where(step < 16, -0.001, -1.0)),
    )
    comparison = compare({"a": a, "b": np.zeros(30), "c": c})
    assert [pair[:2] for pair in comparison.pairs if not pair.significant] == [
        ("a", "c"),
        ("b", "c"),
    ]
    assert comparison.groups == (("b", "c"),)
    assert (
        "Not joined: 1 pair without a significant difference"
        in critical_difference(comparison).decode()
    )


@pytest.mark.parametrize("format", ["svg", "png"])
def test_the_same_comparison_gives_the_same_bytes_whatever_the_users_style(format):
    first = critical_difference(example(), format)
    with matplotlib.rc_context(
        {"font.size": 30, "savefig.facecolor": "black", "lines.marker": "x"}
    ):
        assert critical_difference(example(), format) == first
        assert matplotlib.rcParams["font.size"] == 30
    assert b"Date" not in first
    assert b"dc:date" not in first


def test_files_are_written_by_their_ending(tmp_path):
    svg = save_critical_difference(example(), tmp_path / "cd.svg")
    png = save_critical_difference(example(), str(tmp_path / "CD.PNG"))
    assert svg.read_bytes() == critical_difference(example(), "svg")
    with Image.open(png) as image:
        assert image.format == "PNG"
        assert image.width > image.height > 200
        assert (np.asarray(image.convert("RGB")) == (0, 114, 178)).all(axis=2).any()


def test_bad_formats_and_places_are_refused(tmp_path):
    with pytest.raises(
        ParameterError, match=r"format='pdf'\): format must be 'svg' or 'png'"
    ):
        critical_difference(example(), "pdf")
    with pytest.raises(ParameterError, match=r"the name must end in \.svg or \.png"):
        save_critical_difference(example(), tmp_path / "cd.pdf")
    with pytest.raises(FileError):
        save_critical_difference(example(), tmp_path / "nowhere" / "cd.svg")
    assert list(tmp_path.iterdir()) == []


def test_without_matplotlib_the_message_names_the_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"pip install weight-imprinting\."):
        critical_difference(example())


def test_statistics_need_no_extra_and_drawing_no_pyplot():
    code = (
        "import sys, imprint.stats\n"
        "heavy = {'matplotlib', 'pandas', 'pyarrow', 'sklearn', 'torch'} & set(sys.modules)\n"
        "import imprint.report\n"
        "heavy |= {'matplotlib'} & set(sys.modules)\n"
        "r = imprint.stats.compare([[1, 2, 3]] * 9, ['a', 'b', 'c'])\n"
        "imprint.report.critical_difference(r, 'png')\n"
        "print(sorted(heavy), 'matplotlib.pyplot' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[] False\n"


def test_bars_that_nearly_touch_are_in_different_lanes():
    assert lanes([(0, 3), (5, 6)]) == [0, 0]
    assert lanes([(0, 3), (5, 6)], gap=2) == [0, 1]
    assert lanes([(0, 3), (1, 2), (5, 6)], gap=2) == [0, 1, 1]
