"""Drift of the inputs that a server classifies: the alarm, and the inputs behind it."""

import logging
import time
from collections.abc import Callable
from threading import Lock
from typing import Any, NamedTuple

from imprint.active.drift import DriftMonitor, spoken_time
from imprint.calibration import Calibration

SUSPICIOUS = 0.05
"""P-value below which an input is stored, to be shown if there is an alarm."""
MAX_KEPT = 200
MAX_SHOWN = 24
LOG = logging.getLogger("imprint.serve")


class OddInput(NamedTuple):
    """An input with a small p-value, as the page shows it."""

    name: str
    preview: str
    """A data URL of the picture, or the text."""


class ServedDrift:
    """Evidence that the inputs of a server look unlike its training data; any thread may use it.

    The evidence refers to one calibration, and is in memory only: it starts again when the model changes.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._calibration: Calibration | None = None
        self._monitor = DriftMonitor(0)
        self._odd: dict[str, OddInput] = {}

    def observe(self, calibration: Calibration, known: float, name: str, preview: Callable[[], str]) -> None:
        """Add the p-value of one input to the evidence; `preview` is called only if the input may be shown."""
        with self._lock:
            if calibration is not self._calibration:
                self._calibration = calibration
                self._start()
            key = str(self._monitor.inputs + 1)
            if known < SUSPICIOUS:
                self._odd[key] = OddInput(name, preview())
                for old in list(self._odd)[:-MAX_KEPT]:
                    del self._odd[old]
            alarm = self._monitor.observe(known, key, spoken_time(time.time()))
        if alarm:
            LOG.warning("Drift: %s.", alarm)

    def restart(self) -> None:
        """Discard the evidence."""
        with self._lock:
            self._start()

    def _start(self) -> None:
        self._monitor = DriftMonitor.of_calibration(self._calibration) if self._calibration else DriftMonitor(0)
        self._odd = {}

    @property
    def alarm(self) -> str | None:
        """The alarm as a sentence; None if there is none."""
        return self._monitor.alarm

    def as_json(self) -> dict[str, Any]:
        """The alarm (or null), the evidence, and the inputs behind an alarm, the smallest p-value first."""
        with self._lock:
            monitor = self._monitor
            odd = [one for one in monitor.unfamiliar if one.name in self._odd][:MAX_SHOWN] if monitor.alarm else []
            shown = [{**self._odd[one.name]._asdict(), "known": one.p_value, "when": one.when} for one in odd]
            return {"alarm": monitor.alarm, "evidence": monitor.evidence, "inputs": monitor.inputs, "unfamiliar": shown}
