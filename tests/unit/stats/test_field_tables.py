"""The tables of `benchmarks/field` list every row won and lost, and an interrupted benchmark resumes."""

import importlib
import sys
from pathlib import Path

import pytest

FIELD = Path(__file__).parents[3] / "benchmarks" / "field"


@pytest.fixture
def tables(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(FIELD))
    for name in ("data", "tables"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    module = importlib.import_module("tables")
    monkeypatch.setattr(module, "CACHE", tmp_path)
    yield module
    for name in ("data", "tables"):
        sys.modules.pop(name, None)


def scores(**by_method):
    instances = ["trec @ 8", "trec @ 16", "mnist", "usps", "svhn"]
    return {
        method: dict(zip(instances, values)) for method, values in by_method.items()
    }


def test_a_comparison_names_the_rows_won_and_lost(tables, capsys, tmp_path):
    given = scores(
        ours=[5, 5, 5, 5, 5],
        one=[6, 7, 4, 5, 3],
        every=[4, 4, 4, 4, 4],
        most=[9, 9, 9, 5, 4],
    )
    tables.print_comparison(
        given, "ours", "accuracy, %", tmp_path / "diagram.svg", "Title"
    )
    lines = {
        line.split(" | ")[0].removeprefix("| "): line.split(" | ")[3:5]
        for line in capsys.readouterr().out.split("\n")
    }
    assert lines["one"] == ["trec (8, 16)", "mnist; svhn"]
    assert lines["every"] == ["", "all 5"]
    assert lines["most"] == ["trec (8, 16); mnist", "svhn"]
    assert b"ours" in (tmp_path / "diagram.svg").read_bytes()


def test_a_long_list_is_all_others_and_names_ties(tables):
    instances = [f"set {i}" for i in range(8)]
    assert tables._won_and_lost(instances[:1], instances[2:], instances) == (
        "set 0",
        "all others; equal on set 1",
    )
    assert tables._won_and_lost(instances[1:], [], instances) == (
        "all others; equal on set 0",
        "",
    )
    assert tables._won_and_lost(instances, [], instances) == ("all 8", "")


def test_the_best_scores_are_bold(tables):
    table = list(
        tables.grid(scores(ours=[5, 5, 5, 5, 5], one=[6, 4, 5, 1, 2]), highest=False)
    )
    assert table[0] == "| data | ours | one |"
    assert table[2:5] == [
        "| trec @ 8 | **5.0** | 6.0 |",
        "| trec @ 16 | 5.0 | **4.0** |",
        "| mnist | **5.0** | **5.0** |",
    ]


def test_what_was_measured_is_not_measured_again(tables):
    assert tables.measured_once("table", "a", lambda: [1.5]) == [1.5]
    assert tables.measured_once("table", "a", lambda: [2.5]) == [1.5]
    assert tables.measured_once("table", "b", lambda: [2.5]) == [2.5]
