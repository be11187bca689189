"""What docs/trust.md says about its tables is what its tables say."""

import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "docs"
PAGE = (FOLDER / "trust.md").read_text("utf-8")
BEHIND = (FOLDER / "benchmarks" / "calibration.md").read_text("utf-8")


def tables(text: str) -> list[list[list[str]]]:
    """The cells of each table of a page, its head included."""
    found = re.findall(r"(?:^\|.*\n)+", text + "\n", re.MULTILINE)
    rows = [[line for line in table.splitlines()] for table in found]
    return [
        [[cell.strip() for cell in re.split(r"\|", line)[1:-1]] for line in lines]
        for lines in rows
    ]


def table(text: str, head: str) -> list[dict[str, str]]:
    """The first table that has this column, as one mapping per row."""
    for names, _, *rows in tables(text):
        if head in names:
            return [dict(zip(names, row, strict=True)) for row in rows]
    raise AssertionError(f"no table has a column {head}")


def numbers(cell: str) -> list[float]:
    return [float(n) for n in re.findall(r"\d+(?:\.\d+)?", cell)]


CALIBRATION = table(PAGE, "calibration error")
KERNEL = [row for row in CALIBRATION if row[""] == "`kernel`"]
SCORES = {row[""]: row for row in table(PAGE, "unrelated images")}


def test_calibration_never_makes_the_error_of_kernel_larger():
    assert "is never larger than before" in PAGE
    assert len(KERNEL) == 6
    for row in KERNEL:
        assert float(row["calibration error"]) <= float(row["before"])


def test_the_interval_holds_the_accuracy_as_often_as_stated():
    stated = re.search(r"in (\d+) % of the models or more", PAGE)
    assert stated
    least = min(float(row["in the interval"]) for row in CALIBRATION)
    assert int(stated[1]) == int(least)


def test_two_further_draws_hold_it_in_ninety_per_cent_with_three_rows():
    assert "in 90 % with three rows per class" in PAGE
    (row,) = [r for r in table(BEHIND, "calibration error") if r["rows"] == "3"]
    assert row["in the interval"] == "90.0"


def test_with_two_rows_nothing_is_refused():
    assert "With two rows per class nothing is refused" in PAGE
    (row,) = [r for r in KERNEL if r["rows"] == "2"]
    assert row["known refused"] == row["unknown refused"] == "0.0"


@pytest.mark.parametrize("place", [0, 1], ids=["AUROC", "refused"])
def test_bold_figures_are_the_best_of_their_column(place):
    scores = [row for name, row in SCORES.items() if not name.startswith("p <")]
    for column in SCORES["`known`"]:
        if not column:
            continue
        values = [numbers(row[column])[place] for row in scores]
        best = max(values)
        for row, value in zip(scores, values, strict=True):
            cell = row[column].split(",")[place]
            assert ("**" in cell) == (value == best), (column, row[""])


def test_no_other_score_wins_on_all_kinds_of_data():
    assert "No other score wins on all three kinds of data" in PAGE
    ours = {
        column: numbers(cell) for column, cell in SCORES["`known`"].items() if column
    }
    for name, row in SCORES.items():
        if name == "`known`" or name.startswith("p <"):
            continue
        ahead = [c for c, cell in ours.items() if numbers(row[c])[0] > cell[0]]
        assert len(ahead) < len(ours), name
        assert set(ahead) <= {"unrelated images"}, name


def test_knn_refuses_more_unrelated_images():
    stated = re.search(
        r"kNN refuses (\d+) % of them where `known` refuses\s+(\d+) %", PAGE
    )
    assert stated
    knn = next(row for name, row in SCORES.items() if name.startswith("kNN"))
    refused = [numbers(row["unrelated images"])[1] for row in (knn, SCORES["`known`"])]
    assert [round(share) for share in refused] == [int(stated[1]), int(stated[2])]
