"""Long recordings in windows: what happens when."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from imprint.core.arrays import Array
from imprint.core.errors import ParameterError, UnreadableInput, check_int

DURATION = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(s?)")


class Segment(NamedTuple):
    """Neighbouring windows with one answer."""

    start: float  # seconds if the windows have a rate, else samples
    end: float
    label: Any  # None: none of the classes
    probability: float  # the mean over the windows
    known: float | None  # the mean p-value; None if the model is not calibrated
    windows: int


@dataclass(frozen=True)
class Windows:
    """How a recording is cut.

    Window i holds `length` samples from `i * step`. A rest that is shorter than a
    window is not classified.
    """

    length: int
    step: int
    rate: float | None = None  # samples per second

    def __post_init__(self) -> None:
        check_int("Windows", "length", self.length)
        check_int("Windows", "step", self.step)
        if self.step > self.length:
            raise ParameterError(
                f"Windows(length={self.length}, step={self.step}): step must be at most"
                " length, or samples in between are left out."
            )
        if self.rate is not None and not 0 < self.rate < np.inf:
            raise ParameterError(f"Windows(rate={self.rate}): rate must be above 0.")

    @classmethod
    def of(
        cls, window: str | int, step: str | int | None, rate: float | None
    ) -> "Windows":
        """From durations such as `2.56s`, which need a rate, or numbers of samples.

        By default, windows do not overlap.
        """
        length = _samples("window", window, rate)
        if step is None:
            return cls(length, length, rate)
        return cls(length, _samples("step", step, rate), rate)

    def starts(self, samples: int) -> range:
        """Where each window begins."""
        return range(0, samples - self.length + 1, self.step)

    def cut(self, recording: Array) -> list[Array]:
        """The windows of a recording.  # (channels, length) each"""
        samples = recording.shape[1]
        if samples < self.length:
            reason = f"{samples:,} samples; a window has {self.length:,}"
            raise UnreadableInput("a recording", reason)
        starts = self.starts(samples)
        return [recording[:, start : start + self.length] for start in starts]

    def time(self, sample: float) -> float:
        """The time of a sample, in seconds if the rate is known."""
        return sample if self.rate is None else sample / self.rate

    def segments(self, answers: Sequence[dict[str, Any]]) -> list[Segment]:
        """The answers for consecutive windows, merged over equal neighbours.

        Overlapping windows meet in the middle of what they share. The first one begins
        and the last one ends where its samples do.

        Parameters
        ----------
        answers : sequence of dict
            With `label`, `probability` and `known`, as of `imprint predict --json`.
        """
        segments = []
        for first, end in _runs([answer["label"] for answer in answers]):
            group = answers[first:end]
            start_sample = self._boundary(first, len(answers))
            end_sample = self._boundary(end, len(answers))
            p_values = [answer["known"] for answer in group]
            probabilities = [answer["probability"] for answer in group]
            segment = Segment(
                start=self.time(start_sample),
                end=self.time(end_sample),
                label=group[0]["label"],
                probability=float(np.mean(probabilities)),
                known=None if None in p_values else float(np.mean(p_values)),
                windows=len(group),
            )
            segments.append(segment)
        return segments

    def _boundary(self, i: int, total: int) -> float:
        """The sample at which window i takes over from the one before it."""
        if i == 0:
            return 0
        shared = self.length - self.step
        if i == total:
            return (total - 1) * self.step + self.length
        return i * self.step + shared / 2


def _samples(name: str, value: str | int, rate: float | None) -> int:
    """A number of samples, or of seconds if it ends in `s`."""
    match = DURATION.fullmatch(str(value).strip())
    if match is None:
        raise ParameterError(
            f"{name}={value!r}: give a number of samples, such as 128, or seconds, such"
            " as 2.56s."
        )
    number = float(match[1])
    if match[2]:
        if rate is None:
            raise ParameterError(
                f"{name}={value!r}: seconds need the samples per second as rate."
            )
        number *= rate
    samples = round(number)
    if samples < 1 or (not match[2] and samples != number):
        raise ParameterError(f"{name}={value!r}: it must be at least one whole sample.")
    return samples


def _runs(labels: Sequence[Any]) -> Iterator[tuple[int, int]]:
    """Where each run of equal labels begins and ends."""
    first = 0
    for i in range(1, len(labels) + 1):
        if i == len(labels) or labels[i] != labels[first]:
            yield first, i
            first = i
