"""Drift of the inputs that a server classifies: the alarm, and the inputs behind it."""

import logging
import time
from collections.abc import Callable
from threading import Lock
from typing import Any

from imprint.active.drift import DriftMonitor, spoken_time
from imprint.calibration import Calibration

SUSPICIOUS = 0.05
"""P-value below which an input is stored, to be shown if there is an alarm."""
MAX_STORED, MAX_SHOWN = 200, 24
LOG = logging.getLogger("imprint.serve")


class ServedDrift:
    """Evidence that the inputs of a server look unlike its training data; any thread may use it.

    The evidence refers to one calibration, and is in memory only: it starts again when the model changes.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._restart(None)

    def observe(self, calibration: Calibration, known: float, name: str, preview: Callable[[], str]) -> None:
        """Add the p-value of one input to the evidence; `preview` is called only if the input may be shown."""
        with self._lock:
            if calibration is not self._calibration:
                self._restart(calibration)
            key = str(self._monitor.inputs + 1)
            if known < SUSPICIOUS:
                self._suspicious[key] = {"name": name, "preview": preview()}
                for old in list(self._suspicious)[:-MAX_STORED]:
                    del self._suspicious[old]
            alarm = self._monitor.observe(known, key, spoken_time(time.time()))
        if alarm:
            LOG.warning("Drift: %s.", alarm)

    def restart(self) -> dict[str, Any]:
        """Discard the evidence; returns the state after that, as JSON."""
        with self._lock:
            self._restart(self._calibration)
        return self.as_json()

    def _restart(self, calibration: Calibration | None) -> None:
        self._calibration = calibration
        self._monitor = DriftMonitor.of_calibration(calibration) if calibration else DriftMonitor(0)
        self._suspicious: dict[str, dict[str, str]] = {}  # the name and the preview, a data URL or a text

    @property
    def alarm(self) -> str | None:
        """The alarm as a sentence; None if there is none."""
        return self._monitor.alarm

    def as_json(self) -> dict[str, Any]:
        """The alarm (or null), the evidence, and the inputs behind an alarm, the smallest p-value first."""
        with self._lock:
            monitor, stored = self._monitor, self._suspicious
            shown = [one for one in monitor.unfamiliar if one.name in stored][:MAX_SHOWN] if monitor.alarm else []
            unfamiliar = [{**stored[one.name], "known": one.p_value, "when": one.when} for one in shown]
            evidence = {"alarm": monitor.alarm, "evidence": monitor.evidence, "inputs": monitor.inputs}
            return {**evidence, "unfamiliar": unfamiliar}
