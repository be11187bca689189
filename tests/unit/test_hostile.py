"""A sample of `make hostile`, and trials that failed in earlier versions."""

import importlib.util
import os
import sys
from pathlib import Path

import pytest

PLACE = Path(__file__).parents[1] / "hostile.py"
ONCE_FAILED = {
    "tables": (75, 978)
}  # Parquet files whose dictionary has fewer values than its indices say


@pytest.fixture(scope="module")
def hostile():
    spec = importlib.util.spec_from_file_location("hostile", PLACE)
    library = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(library)
    return library


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["models", "images", "tables", "arrays"])
def test_hostile_inputs_are_answered_or_refused_in_one_sentence(
    hostile, kind, tmp_path, monkeypatch
):
    monkeypatch.setattr(os, "fsync", os.fsync)  # `models` replaces it
    trial = hostile.KINDS[kind][0](tmp_path)
    outcomes = {trial(seed) for seed in (*range(40), *ONCE_FAILED.get(kind, ()))}
    assert "refused" in outcomes or kind == "arrays"
    assert "answered" in outcomes


@pytest.mark.filterwarnings("ignore")
@pytest.mark.skipif(
    sys.platform != "linux", reason="limits and streams are those of Linux"
)
@pytest.mark.parametrize(
    ("kind", "trials"),
    [("labels", 40), ("copies", 40), ("streams", 4), ("watching", 25)],
)
def test_hostile_systems_are_endured(hostile, kind, trials, tmp_path):
    trial = hostile.KINDS[kind][0](tmp_path)
    outcomes = {trial(seed) for seed in range(trials)}
    assert "answered" in outcomes


def test_every_family_is_part_of_make_hostile(hostile):
    assert {"labels", "copies", "limits", "streams", "watching"} < set(hostile.KINDS)
    assert sum(share for _, share in hostile.KINDS.values()) < 1.3
