"""Drift: a test martingale of conformal p-values, and the inputs that are the evidence
against the training data.

While inputs are exchangeable with the training data, their p-values are uniform, and
the capital of a gambler who bets against that is a non-negative supermartingale that
starts at 1: with probability 0.95 it never reaches 20 (Ville). The gambler bets on
small p-values only, since inputs that look more familiar than the training data are no
reason for concern.
"""

from bisect import bisect_right, insort
from collections import deque
from datetime import datetime, timedelta
from typing import NamedTuple

import numpy as np

from imprint.calibration import Calibration
from imprint.head import Decider

# power bets e p^(e - 1) (Vovk); the exponent 1 does not bet
EXPONENTS = np.array([1.0, 0.75, 0.5, 0.25, 0.05])
# share of the capital that all bets share equally before each input, so that late
# changes are detected
SWITCH = 0.001
# evidence at which an alarm is given: the minimum odds, to one, against the training
# data
LEVELS = (20, 100)
# Finite after the next bet too, which multiplies by at most 0.05 / p^0.95.
MAX_CAPITAL = 1e200
REMEMBERED = 500  # inputs that are remembered, to show the evidence
EXTENDED = 10_000  # inputs by which the reference rows of the calibration are extended


def spoken_time(seconds: float) -> str:
    """A time for users: the weekday and the hour within the last six days, otherwise
    the date.
    """
    then = datetime.fromtimestamp(seconds)
    # after seven days, a weekday would be ambiguous
    if datetime.now() - then < timedelta(days=6):
        return f"{then:%A %H:%M}"
    return f"{then:%Y-%m-%d}"


class Unfamiliar(NamedTuple):
    """One input of a suspicious stretch: its p-value, its name, its time, and how to
    show it.
    """

    known: float
    name: str
    when: str
    preview: str


class DriftMonitor:
    """Evidence that inputs look unlike the training data, updated with the p-value
    (`known`) of every input.
    """

    def __init__(self, reference: int):
        self.reference = reference
        self.inputs = 0
        self._capital = np.full(len(EXPONENTS), 1 / len(EXPONENTS))
        self._seen: list[float] = []
        self._rise = 0.0
        self._level = 0
        self._since = ""
        self._stretch: deque[Unfamiliar] = deque(maxlen=REMEMBERED)

    @classmethod
    def of(cls, head: Decider) -> "DriftMonitor | None":
        """A monitor for a model with one label per input; None if it is not calibrated.

        The reference rows are those of the calibration; rows that represent several
        count by their effective number.
        """
        calibration = head.calibration if head.calibrated else None
        if not isinstance(calibration, Calibration):
            return None
        weights = np.diff(calibration.below)
        if not len(weights):
            return cls(0)
        effective = weights.sum() ** 2 / (weights**2).sum()
        return cls(int(effective))

    def observe(
        self,
        p_value: float,
        name: str,
        when: str = "",
        preview: str = "",
    ) -> str | None:
        """Take one input into account. Returns the sentence of an alarm when the
        evidence first reaches a level.

        `when` is the time of the input for users; without it, an alarm names the input.
        `preview` is kept for them.
        """
        p = self._conformal(p_value)
        self.inputs += 1
        odds = EXPONENTS * p ** (EXPONENTS - 1)
        mixed = (1 - SWITCH) * self._capital + SWITCH * self._capital.mean()
        self._capital = np.minimum(mixed * odds, MAX_CAPITAL)
        # an alarm keeps the beginning that it states
        if self._rise == 0 and not self._level:
            self._since = when or name
            self._stretch.clear()
        growth = float(np.log(odds.mean()))
        self._rise = max(0.0, self._rise + growth)
        self._stretch.append(Unfamiliar(p_value, name, when, preview))
        level = sum(self.evidence >= odds_against for odds_against in LEVELS)
        if level <= self._level:
            return None
        self._level = level
        return self.alarm

    @property
    def evidence(self) -> float:
        """The capital: at least 20 in at most 5 % of all streams that are exchangeable
        with the training data.
        """
        return float(self._capital.sum())

    @property
    def alarm(self) -> str | None:
        """The sentence of the alarm, which stays until `DriftMonitor` starts again;
        None below 1:20.
        """
        if not self._level:
            return None
        odds = LEVELS[self._level - 1]
        return (
            f"inputs since {self._since} look unlike the training data (evidence"
            f" 1:{odds})"
        )

    @property
    def unfamiliar(self) -> list[Unfamiliar]:
        """The inputs of the suspicious stretch, the least familiar first."""
        return sorted(self._stretch, key=lambda one: one.known)

    def _conformal(self, p_value: float) -> float:
        """The p-value among the reference rows and the inputs so far, which makes
        p-values independent.

        `known` compares every input with the same rows; over thousands of inputs their
        sampling error would count as evidence.
        """
        # the p-value of `known` is (reference rows below + 1) / (reference rows + 1)
        below_in_reference = max(0.0, p_value * (self.reference + 1) - 1)
        below = below_in_reference + bisect_right(self._seen, p_value)
        total = self.reference + len(self._seen) + 1
        if len(self._seen) < EXTENDED:
            insort(self._seen, p_value)
        return (below + 1) / total
