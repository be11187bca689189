"""The results of a study as one file: its content, and that other tools read it."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from imprint.cli import main
from imprint.core.errors import FileError, ParameterError
from imprint.report.results_file import MEANINGS, export, results_table
from imprint.study import Grid, Held, Study, run
from imprint.study.store import schema

ROOT = Path(__file__).parents[3]
rng = np.random.default_rng(0)
Y = np.repeat(np.arange(4), 15)
X = (rng.normal(size=(4, 5))[Y] + rng.normal(size=(60, 5))).astype(np.float32)
SOURCE = Held(
    {(b, "one"): (X * (1 + i), Y, X[::3], Y[::3]) for i, b in enumerate("ab")}
)
GRID = Grid(
    generator=["mean", "kmeans"],
    k=[1, 3],
    norm_post=["none", "l2"],
    aggregator=["max", "nearest"],
    m=[1, 2],
)
STUDY = Study(
    name="small",
    backbones=["a", "b"],
    datasets="one",
    tasks=["all", "even"],
    seeds=[1, 2],
    grid=GRID,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("study")
    run(STUDY, place, source=SOURCE, workers=1)
    return place


def test_every_column_of_a_shard_is_there_and_explained(folder):
    table = results_table(folder)
    assert table.column_names == list(MEANINGS)
    assert set(schema().names) <= set(MEANINGS)
    assert all(
        str(t) in ("string", "int32", "int64", "float", "double")
        for t in table.schema.types
    )


def test_foreign_results_are_not_overwritten(folder, tmp_path, capsys):
    """The user did not choose the name `results.parquet`, so a foreign file of this name is kept."""
    place = shutil.copytree(folder, tmp_path / "study")
    assert (
        main(["study", "export", str(place)])
        == main(["study", "export", str(place)])
        == 0
    ), "it replaces exports"
    for write in (
        lambda path: path.write_text("mine"),
        lambda path: pq.write_table(pa.table({"mine": [1]}), path),
    ):
        write(place / "results.parquet")
        before = (place / "results.parquet").read_bytes()
        assert main(["study", "export", str(place)]) == 2
        assert (
            "results.parquet: it exists and holds no results of a study"
            in capsys.readouterr().err
        )
        assert (place / "results.parquet").read_bytes() == before
        assert (
            main(
                [
                    "study",
                    "export",
                    str(place),
                    "--output",
                    str(place / "results.parquet"),
                ]
            )
            == 2
        )
        (place / "results.parquet").unlink()
        assert main(["study", "export", str(place)]) == 0


def test_rows_are_those_of_the_study_in_its_order(folder):
    ours, table = STUDY.results(folder), results_table(folder)
    for name in ("backbone", "task", "generator", "seed", "accuracy"):
        assert table[name].to_pylist() == ours[name].to_pylist()
    assert table["key"].to_pylist() == [key.hex() for key in ours["key"].to_pylist()]
    assert set(table["method"].to_pylist()) == set(map(str, STUDY.methods))
    parts = {
        (r["generator"], r["k"], r["aggregator"], r["m"]) for r in table.to_pylist()
    }
    assert ("mean", None, "max", None) in parts
    assert ("kmeans(k=3)", 3, "nearest(m=2)", 2) in parts


def test_a_parquet_file_explains_itself(folder, tmp_path):
    export(folder, tmp_path / "results.parquet")
    schema = pq.read_schema(tmp_path / "results.parquet")
    assert {f.name: f.metadata[b"description"].decode() for f in schema} == MEANINGS
    assert (
        json.loads(schema.metadata[b"imprint"])[folder.name]["study"]["name"] == "small"
    )
    assert pq.read_table(tmp_path / "results.parquet").equals(results_table(folder))


def test_a_csv_file_holds_the_same(folder, tmp_path):
    export(folder, tmp_path / "results.csv")
    rows = pyarrow.csv.read_csv(tmp_path / "results.csv")
    assert rows["accuracy"].to_pylist() == results_table(folder)["accuracy"].to_pylist()


def test_stores_in_one_folder_are_joined(tmp_path):
    part = Study(
        name="x", backbones="a", datasets="one", tasks="all", seeds=1, recipes="qi2018"
    )
    more = Study(
        name="x",
        backbones="a",
        datasets="one",
        tasks="all",
        seeds=1,
        recipes="imprint2025",
    )
    other = Study(
        name="y", backbones="b", datasets="one", tasks="all", seeds=1, recipes="qi2018"
    )
    for study, place in ((part, "first"), (more, "first"), (other, "second")):
        run(study, tmp_path / place, source=SOURCE, workers=1)
    rows = results_table(tmp_path).to_pylist()
    assert [(r["study"], r["backbone"], r["generator"]) for r in rows] == [
        ("first", "a", "kmeans(k=20)"),
        ("first", "a", "mean"),
        ("second", "b", "mean"),
    ]
    changed = Held({("b", "one"): (X + 1, Y, X[::3], Y[::3])})
    run(other, tmp_path / "second", source=changed, workers=1)
    assert (
        len(results_table(tmp_path)) == 3
    )  # results for other embeddings are not shown


def test_refusals(folder, tmp_path):
    with pytest.raises(FileError, match="no study has been run into this folder"):
        results_table(tmp_path)
    with pytest.raises(
        ParameterError, match=re.escape("the name must end in .parquet or .csv")
    ):
        export(folder, tmp_path / "results.xlsx")


def test_the_page_has_the_dictionary():
    page = (ROOT / "docs" / "studies.md").read_text(encoding="utf-8")
    rows = re.findall(
        r"^\| `(\w+)` \| [^|]+ \| (.+) \|$",
        page[page.index("## Columns of the results") :],
        re.MULTILINE,
    )
    assert dict(rows[: len(MEANINGS)]) == MEANINGS


@pytest.fixture(scope="module")
def told(folder, tmp_path_factory):
    """The expected output of the examples, computed from the table."""
    path = tmp_path_factory.mktemp("export") / "results.parquet"
    rows = export(folder, path).to_pylist()
    values: dict[tuple[str, ...], list[float]] = {}
    for row in rows:
        values.setdefault((row["backbone"], row["task"], row["method"]), []).append(
            row["accuracy"]
        )
    medians = {key: float(np.median(v)) for key, v in values.items()}
    lines = {}
    for method in map(str, STUDY.methods):
        of_method = {key: v for key, v in medians.items() if key[2] == method}
        ranks = [
            _rank(v, [o for other, o in medians.items() if other[:2] == key[:2]])
            for key, v in of_method.items()
        ]
        lines[method] = (
            f"{method}\t{100 * np.mean(list(of_method.values())):.2f}\t{np.mean(ranks):.2f}"
        )
    return path, lines


def _rank(value, among):
    return 1 + sum(o > value for o in among) + (sum(o == value for o in among) - 1) / 2


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_the_examples_rank_the_methods(told, library):
    pytest.importorskip(library)
    path, lines = told
    script = ROOT / "examples" / f"results_{library}.py"
    printed = subprocess.run(
        [sys.executable, script, path],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    head, *rows = printed.stdout.splitlines()
    assert head == "method\taccuracy, %\taverage rank"
    assert sorted(rows) == sorted(lines.values())
    assert [float(r.split("\t")[2]) for r in rows] == sorted(
        float(r.split("\t")[2]) for r in rows
    )
