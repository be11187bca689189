"""What a plan will cost, before anything of it runs."""

import time
from typing import NamedTuple

import numpy as np

from imprint.study.arrange import arrange
from imprint.study.plan import Plan, Unit

BASE = 250e6  # bytes of a process that has loaded the libraries


class Estimate(NamedTuple):
    """How much there is to do; `seconds` and `memory` (bytes, of one worker) are guesses."""

    experiments: int
    left_out: int
    to_do: int
    """Experiments that are not finished yet."""
    computations: int
    """Distinct computations for them: states of classes and decisions."""
    units: int
    seconds: float
    memory: float


def estimate(plan: Plan, workers: int) -> Estimate:
    """Count what the units of a plan compute, and guess how long it takes on so many workers."""
    states = decisions = 0
    for unit in plan.units:
        data = unit.source.open(unit.backbone, unit.dataset)
        more, others = arrange(unit, data.y, data.y_test).computations()
        states, decisions = states + more, decisions + others
    work = sum(u.work for u in plan.units)
    seconds = work / _speed() / max(1, min(workers, len(plan.units)))
    memory = max(map(_memory, plan.units), default=0.0)
    named = plan.experiments, plan.left_out, plan.cells, states + decisions, len(plan.units)
    return Estimate(*named, seconds, memory)


def _speed() -> float:
    """Multiplications per second of one core of this machine, by trying."""
    A = np.ones((512, 512), dtype=np.float32)
    A @ A
    start = time.process_time()
    for _ in range(4):
        A @ A
    return 4 * 512**3 / max(time.process_time() - start, 1e-6)


def _memory(unit: Unit) -> float:
    """Embeddings, their normalised copy, the proxies in a few forms, one block of products."""
    data = unit.source.open(unit.backbone, unit.dataset)
    n, d = data.X.shape
    counts = np.unique(data.y, return_counts=True)[1]
    proxies = max(sum(g.most(int(c)) for c in counts) for g in {m.generator for m in unit.methods})
    return float(BASE + 64e6 + 4 * d * (2 * n + 2 * len(data.X_test) + 6 * proxies))
