"""The test martingale of p-values."""

from datetime import datetime, timedelta

import numpy as np
import pytest

from imprint import ImprintClassifier
from imprint.active.drift import LEVELS, REMEMBERED, DriftMonitor, spoken_time


def rows(n, seed, shift=0.0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    return (
        rng.normal(scale=0.3, size=(n, 6)) + np.eye(6)[y] + shift * np.eye(6)[5]
    ).astype(np.float32), y


def fitted(seed=0, n=150):
    return ImprintClassifier(calibrate=True, random_state=0).fit(*rows(n, seed))


def alarms(monitor, p_values):
    return [
        i for i, p in enumerate(p_values) if monitor.observe(float(p), f"input {i}")
    ]


def test_recent_times_are_weekdays_and_earlier_ones_are_dates():
    now = datetime.now()
    recent, earlier = now - timedelta(days=2), now - timedelta(days=30)
    assert spoken_time(recent.timestamp()) == f"{recent:%A %H:%M}"
    assert spoken_time(earlier.timestamp()) == f"{earlier:%Y-%m-%d}"


def test_exchangeable_inputs_rarely_give_an_alarm():
    """At most 5 % of streams give an alarm; 6 or more of 40 streams of 2,000 inputs are very unlikely."""
    streams = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        reference, stream = np.sort(rng.normal(size=100)), rng.normal(size=2000)
        p = (np.searchsorted(reference, stream, side="right") + 1) / 101
        streams += bool(alarms(DriftMonitor(100), p))
    assert streams <= 5


def test_in_distribution_inputs_give_no_alarm_and_others_do():
    clf = fitted()
    monitor = DriftMonitor.of(clf.head_)
    assert not alarms(monitor, clf.known(rows(1000, 1)[0]))
    (first, *_) = alarms(monitor, clf.known(rows(200, 2, shift=1.5)[0]))
    assert first < 100
    assert monitor.alarm.endswith("look unlike the training data (evidence 1:100)")


def test_the_alarm_names_the_beginning_and_the_evidence():
    monitor = DriftMonitor(999)
    rng = np.random.default_rng(0)
    for i, p in enumerate(rng.uniform(size=500)):
        monitor.observe(p, f"usual {i}", "Monday")
    for i, p in enumerate(rng.uniform(0.001, 0.02, size=30)):
        monitor.observe(p, f"odd {i}", "Tuesday")
    assert (
        monitor.alarm
        == f"inputs since Tuesday look unlike the training data (evidence 1:{LEVELS[-1]})"
    )
    assert monitor.unfamiliar[0].name.startswith("odd")
    p_values = [one.known for one in monitor.unfamiliar]
    assert p_values == sorted(p_values)
    assert len(monitor.unfamiliar) <= REMEMBERED


def test_an_alarm_keeps_its_beginning_and_its_inputs_when_familiar_inputs_follow():
    monitor = DriftMonitor(999)
    for i in range(20):
        monitor.observe(0.01, f"odd {i}", "Tuesday")
    alarm = monitor.alarm
    for i in range(450):
        monitor.observe(0.9, f"usual {i}", "Wednesday")
    assert monitor.alarm == alarm
    assert monitor.unfamiliar[19].name.startswith("odd")


def test_familiar_inputs_give_no_evidence():
    monitor = DriftMonitor(99)
    assert not alarms(monitor, np.full(3000, 1.0))
    assert monitor.alarm is None
    assert monitor.evidence < 1


def test_levels_are_reported_once_each():
    monitor = DriftMonitor(999)
    sentences = [monitor.observe(0.03, str(i)) for i in range(400)]
    assert 1 <= sum(s is not None for s in sentences) <= len(LEVELS)
    assert monitor.evidence > LEVELS[-1]
    assert np.isfinite(monitor.evidence)


@pytest.mark.parametrize("calibrate", [False, True])
def test_only_calibrated_models_have_a_monitor(calibrate):
    clf = ImprintClassifier(calibrate=calibrate, random_state=0).fit(*rows(60, 0))
    monitor = DriftMonitor.of(clf.head_)
    assert (monitor is not None) == calibrate
    assert monitor is None or 40 <= monitor.reference <= 60
