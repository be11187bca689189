"""Interleaved timing of two functions, and the rows of the result table."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Row(NamedTuple):
    kernel: str
    setting: str
    peer: str
    ours: float
    theirs: float
    cpu_ours: float
    cpu_theirs: float
    quality: str
    ours_quality: float
    their_quality: float

    def __str__(self) -> str:
        return (
            f"| {self.kernel} | {self.setting} | {self.peer} | {_seconds(self.ours)} | {_seconds(self.theirs)} "
            f"| {self.theirs / self.ours:.1f} | {self.cpu_theirs / max(self.cpu_ours, 1e-9):.1f} "
            f"| {self.quality} | {self.ours_quality:.6g} | {self.their_quality:.6g} |"
        )


HEADER = (
    "| kernel | setting | peer | ours | peer's | times faster | by processor time | quality | ours | peer's |\n"
    "|---|---|---|---:|---:|---:|---:|---|---:|---:|"
)


def _seconds(value: float) -> str:
    return f"{value * 1e3:.1f} ms" if value < 1 else f"{value:.2f} s"


def timed(function: Callable[[], Any]) -> tuple[float, float, Any]:
    """Wall-clock seconds, processor seconds of all threads, and the result of a call."""
    start, busy = time.perf_counter(), time.process_time()
    result = function()
    return time.perf_counter() - start, time.process_time() - busy, result


def compare(
    kernel: str,
    setting: str,
    peer: str,
    ours: Callable[[int], Any],
    theirs: Callable[[int], Any],
    quality: tuple[str, Callable[[Any], float], Callable[[Any], float]],
    repeats: int,
) -> Row:
    """Run both in turn, with seeds 0 to repeats - 1; report median times and mean quality."""
    name, judge_ours, judge_theirs = quality
    figures = []
    for seed in range(repeats):
        a, cpu_a, mine = timed(lambda s=seed: ours(s))
        b, cpu_b, other = timed(lambda s=seed: theirs(s))
        figures.append((a, b, cpu_a, cpu_b, judge_ours(mine), judge_theirs(other)))
    columns = list(zip(*figures))
    times = [float(np.median(column)) for column in columns[:4]]
    return Row(
        kernel,
        setting,
        peer,
        *times,
        name,
        float(np.mean(columns[4])),
        float(np.mean(columns[5])),
    )
