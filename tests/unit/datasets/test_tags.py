"""Tags in tables and folders: separators, lists, several columns, equal files."""

import json

import numpy as np
import pytest
from PIL import Image

from imprint.core.errors import FileError
from imprint.datasets import load


def table(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def tags(split):
    return split.tags, split.labels.tolist(), split.classes


def test_cells_are_split_at_the_separator(tmp_path):
    path = table(tmp_path / "a.csv", "text,labels\nx,joy | love\ny,love\nz,\n")
    split = load(path, separator="|")
    assert tags(split) == (True, ["joy|love", "love"], ("joy", "love"))
    assert split.found == "2 texts of 2 labels (a.csv)"
    assert split.omissions == ("Left out rows of a.csv without a label (1): 4.",)


def test_without_a_separator_a_cell_is_one_label(tmp_path):
    split = load(table(tmp_path / "a.csv", "text,label\nx,joy|love\ny,love\n"))
    assert tags(split) == (False, ["joy|love", "love"], ("joy|love", "love"))


def test_labels_that_are_all_numbers_are_numbers(tmp_path):
    split = load(
        table(tmp_path / "a.tsv", "text\tlabel\nx\t4,27\ny\t10\n"), separator=","
    )
    assert tags(split) == (True, ["4|27", "10"], (4, 10, 27))


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_lists_of_labels_need_no_separator(tmp_path, suffix):
    rows = [("x", ["joy", "love"]), ("y", []), ("z", ["joy"])]
    path = tmp_path / f"a{suffix}"
    if suffix == ".csv":
        lines = "".join(
            '{},"{}"\n'.format(t, json.dumps(s).replace('"', '""')) for t, s in rows
        )
        table(path, "text,label\n" + lines)
    elif suffix == ".jsonl":
        table(
            path, "".join(json.dumps({"text": t, "labels": s}) + "\n" for t, s in rows)
        )
    else:
        pa = pytest.importorskip("pyarrow")
        pytest.importorskip("pyarrow.parquet").write_table(
            pa.table({"text": [t for t, _ in rows], "label": [s for _, s in rows]}),
            path,
        )
    assert tags(load(path)) == (True, ["joy|love", "", "joy"], ("joy", "love"))


def test_several_columns_of_zeros_and_ones_or_of_labels(tmp_path):
    path = table(
        tmp_path / "a.csv",
        "text,joy,love,first,second\nx,1,0,joy,\ny,1,1,love,joy\nz,0,0,,\n",
    )
    assert tags(load(path, label_column="joy,love")) == (
        True,
        ["joy", "joy|love", ""],
        ("joy", "love"),
    )
    assert tags(load(path, label_column="first, second")) == (
        True,
        ["joy", "joy|love", ""],
        ("joy", "love"),
    )
    with pytest.raises(FileError, match=r"has no column 'joi'\. Did you mean 'joy'\?"):
        load(path, label_column="joi,love")


def test_several_columns_of_a_table_of_embeddings(tmp_path):
    split = load(
        table(tmp_path / "a.csv", "x0,x1,a,b\n0.5,1,1,0\n0.1,2,1,1\n"),
        label_column="a,b",
    )
    assert tags(split) == (True, ["a", "a|b"], ("a", "b"))
    assert np.asarray(split.inputs).tolist() == [[0.5, 1.0], [np.float32(0.1), 2.0]]


@pytest.mark.parametrize("cell", ['"[1.5]"', '"[""joy"", null]"', '"[joy]"'])
def test_a_cell_that_is_not_a_list_of_labels_is_refused(tmp_path, cell):
    with pytest.raises(FileError, match=r"a\.csv: .* is not a list of labels, such as"):
        load(table(tmp_path / "a.csv", f"text,label\nx,{cell}\n"))


def test_equal_files_in_several_folders_are_one_input(tmp_path):
    for name, folders in {"a": ["sea", "sky"], "b": ["sea"], "c": ["sky"]}.items():
        pixels = np.full((4, 4), ord(name), np.uint8)
        for folder in folders:
            (tmp_path / folder).mkdir(exist_ok=True)
            Image.fromarray(pixels).save(tmp_path / folder / f"{name}{len(folder)}.png")
    assert len(load(tmp_path)) == 4
    split = load(tmp_path, separator="|")
    assert tags(split) == (True, ["sea|sky", "sea", "sky"], ("sea", "sky"))
    assert list(split.names) == ["sea/a3.png", "sea/b3.png", "sky/c3.png"]
    assert [int(split.inputs[i].flat[0]) for i in range(3)] == [
        ord("a"),
        ord("b"),
        ord("c"),
    ]


def test_unreadable_files_are_not_equal(tmp_path):
    for folder in ("sea", "sky"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.png").symlink_to("nowhere.png")
    split = load(tmp_path, separator="|")
    assert tags(split) == (True, ["sea", "sky"], ("sea", "sky"))
