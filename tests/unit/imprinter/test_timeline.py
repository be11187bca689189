"""Recordings are cut into windows, and answers become segments of time."""

import numpy as np
import pytest

from imprint.core.errors import ParameterError, UnreadableInput
from imprint.imprinter.timeline import Windows


def answers(labels: str, known: float | None = 0.5) -> list[dict]:
    return [{"label": x, "probability": 0.9, "known": known} for x in labels]


def test_lengths_are_samples_or_seconds():
    assert Windows.of("2.56s", "1.28s", 50) == Windows(128, 64, 50)
    assert Windows.of(100, None, None) == Windows(100, 100)


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        (("2s", None, None), "seconds need the samples per second as rate"),
        (("x", None, None), "give a number of samples"),
        (("0", None, None), "at least one whole sample"),
        (("2.5", None, None), "at least one whole sample"),
        (("10", "11", None), "step must be at most length"),
        (("10", "1", -1.0), "rate must be above 0"),
    ],
)
def test_impossible_windows_are_refused(arguments, rule):
    with pytest.raises(ParameterError, match=rule):
        Windows.of(*arguments)


def test_windows_overlap_and_a_short_rest_is_left_out():
    recording = np.arange(22.0)[None]
    cut = Windows(10, 5).cut(recording)
    assert [window[0, 0] for window in cut] == [0, 5, 10]
    with pytest.raises(UnreadableInput, match="22 samples; a window has 23"):
        Windows(23, 23).cut(recording)


def test_equal_neighbours_are_one_segment():
    first, second, third = Windows(10, 5, 5).segments(answers("aabba"))
    # windows at 0, 5, ..., 20 samples; boundaries in the middle of what they share
    assert (first.start, first.end, first.label, first.windows) == (0, 2.5, "a", 2)
    assert (second.start, second.end, second.label) == (2.5, 4.5, "b")
    assert (third.start, third.end, third.label) == (4.5, 6, "a")
    assert first.probability == pytest.approx(0.9)
    assert Windows(10, 5).segments(answers("a", None))[0].known is None
