"""Tables of embeddings, and errors in tables of any kind."""

import gzip
import json
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

from imprint.core.errors import FileError, MissingExtraError, ParameterError
from imprint.datasets import load
from imprint.datasets.tables import formats, layout, read_rows
from imprint.imprinter.items import split_of_values

X = np.random.default_rng(0).normal(size=(7, 3)).astype(np.float32)
Y = [2, 0, 1, 1, 2, 0, 0]
COLUMNS = {"x0": X[:, 0], "x1": X[:, 1], "x2": X[:, 2], "label": Y}


def text(rows, delimiter=","):
    return "".join(delimiter.join(map(str, row)) + "\n" for row in rows)


def delimited(delimiter=","):
    return text(
        [
            COLUMNS,
            *zip(
                *(
                    c.tolist() if isinstance(c, np.ndarray) else c
                    for c in COLUMNS.values()
                )
            ),
        ],
        delimiter,
    )


def as_json(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def parquet(path, **columns):
    pq.write_table(pa.table(columns), path)
    return path


WRITERS = {
    "a.csv": lambda p: p.write_text(delimited()),
    "b.csv": lambda p: p.write_text(delimited(";")),
    "c.csv": lambda p: p.write_text(
        delimited(", ").replace(", label", ",label")
    ),  # spaces around the numbers
    "d.csv": lambda p: p.write_text(delimited().replace("\n", "\n\n", 2)),
    "a.tsv": lambda p: p.write_text(delimited("\t")),
    "lists.csv": lambda p: p.write_text(
        text([("e", "label"), *((f'"{x.tolist()}"', y) for x, y in zip(X, Y))])
    ),
    "a.jsonl": lambda p: p.write_text(
        as_json(*({"x0": a, "x1": b, "x2": c, "label": y} for (a, b, c), y in rows()))
    ),
    "lists.jsonl": lambda p: p.write_text(
        as_json(*({"e": x, "label": y} for x, y in rows()))
    ),
    "a.csv.gz": lambda p: p.write_bytes(gzip.compress(delimited().encode())),
    "a.tsv.gz": lambda p: p.write_bytes(gzip.compress(delimited("\t").encode())),
    "a.jsonl.gz": lambda p: p.write_bytes(
        gzip.compress(as_json(*({"e": x, "label": y} for x, y in rows())).encode())
    ),
    "a.feather": lambda p: feather.write_feather(pa.table(COLUMNS), str(p)),
    "a.parquet": lambda p: parquet(p, **COLUMNS),
    "doubles.parquet": lambda p: parquet(
        p, **{k: np.asarray(v, float) for k, v in COLUMNS.items()}
    ),
    "lists.parquet": lambda p: parquet(p, e=list(X), label=Y),
    "fixed.parquet": lambda p: parquet(
        p, e=pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), 3), label=Y
    ),
    "coded.parquet": lambda p: parquet(
        p, **COLUMNS | {"label": pa.array(Y).dictionary_encode()}
    ),
}


def rows():
    return zip(X.tolist(), Y)


@pytest.mark.parametrize("name", WRITERS)
def test_every_kind_of_table_gives_the_same_rows(tmp_path, name):
    WRITERS[name](tmp_path / name)
    split = load(tmp_path / name)
    np.testing.assert_array_equal(split.inputs, X)
    assert split.inputs.dtype == np.float32
    assert split.labels.tolist() == Y
    assert split.labels.dtype == np.int64
    assert (split.modality, split.classes, split.parts) == (
        "embedding",
        (0, 1, 2),
        ("train",),
    )
    assert split.found == f"7 embeddings of 3 classes, 3 wide ({name})"
    assert list(split.names) == [
        f"{name}, row {number}" for number, _ in read_rows(tmp_path / name)
    ]


@pytest.mark.parametrize("name", WRITERS)
def test_labels_are_not_needed_and_never_taken_for_numbers(tmp_path, name):
    WRITERS[name](tmp_path / name)
    split = load(tmp_path / name, labelled=False)
    np.testing.assert_array_equal(split.inputs, X)
    assert (len(split.labels), split.classes, split.found) == (
        0,
        (),
        f"7 embeddings, 3 wide ({name})",
    )
    assert list(split.names) == [
        f"{name}, row {number}" for number, _ in read_rows(tmp_path / name)
    ]
    assert name != "a.csv" or split.names[0] == "a.csv, row 2"  # the header is row 1


@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "lists.parquet"])
def test_the_fast_reader_is_used_and_agrees_with_the_general_one(
    tmp_path, name, monkeypatch
):
    WRITERS[name](tmp_path / name)
    with monkeypatch.context() as m:
        single = []
        m.setattr(layout, "to_number", single.append)
        m.setattr(layout, "to_numbers", None)
        fast = load(tmp_path / name)
    assert len(single) <= 3  # of the first row, which determines the layout
    monkeypatch.setattr(layout, "_from_arrow", lambda *_: None)
    assert load(tmp_path / name).fingerprint == fast.fingerprint


def test_rows_at_block_boundaries_are_read_correctly(tmp_path, monkeypatch):
    monkeypatch.setattr(formats, "BATCH_CELLS", 512)
    monkeypatch.setattr(formats, "BATCH_BYTES", 4096)
    monkeypatch.setattr(formats, "BATCH_ROWS", 100)
    many = np.random.default_rng(1).normal(size=(1000, 4)).astype(np.float32)
    columns = {f"x{i}": many[:, i] for i in range(4)} | {
        "label": [f"c{i % 7}" for i in range(1000)]
    }
    columns |= {
        "split": np.where(np.arange(1000) % 3, "train", "test"),
        "id": [f"row {i}" for i in range(1000)],
    }
    parquet(tmp_path / "a.parquet", **columns)
    table = pa.table(columns).to_pylist()
    (tmp_path / "a.csv").write_text(text([columns, *(r.values() for r in table)]))
    (tmp_path / "a.jsonl").write_text(as_json(*table))
    for suffix in ("parquet", "csv", "jsonl"):
        split = load(tmp_path / f"a.{suffix}", "test")
        np.testing.assert_array_equal(split.inputs, many[::3])
        assert split.labels[:3].tolist() == ["c0", "c3", "c6"]
        assert split.names[1] == "row 3"
        assert split.parts == ("train", "test")
        assert len(split.labels) == len(split.names) == 334


def test_columns_may_have_other_names(tmp_path):
    (tmp_path / "a.csv").write_text("message,kind\nhello,x\nbye,y\n")
    split = load(tmp_path / "a.csv", label_column="kind", text_column="message")
    assert (split.inputs, split.labels.tolist()) == (("hello", "bye"), ["x", "y"])
    assert split.found == "2 texts of 2 classes (a.csv)"
    assert load(tmp_path / "a.csv", text_column="message", labelled=False).inputs == (
        "hello",
        "bye",
    )


def test_an_index_written_by_pandas_is_not_part_of_the_embedding(tmp_path):
    (tmp_path / "a.csv").write_text(",x0,label\n0,1.5,a\n1,2.5,b\n")
    split = load(tmp_path / "a.csv")
    assert split.inputs.tolist() == [[1.5], [2.5]]
    assert list(split.names) == ["0", "1"]


WIDE = ",".join(f"x{i}" for i in range(100))
WRONG = [
    (
        "a.csv",
        "x0,x1,label\n1,2,a\n3,abc,b\n",
        r"row 3, column 'x1': 'abc' is not a number\.$",
    ),
    (
        "a.csv",
        "x0,x1,label\n1,2,a\n\n3,,b\n",
        r"row 4, column 'x1': there is no number\.$",
    ),
    (
        "a.csv",
        "x0,x1,label\n1,2,a\n3,nan,b\n",
        r"row 3, column 'x1': 'nan' is not finite\.$",
    ),
    (
        "a.csv",
        "x0,x1,label\n1,2,a\n3,1e39,b\n",
        r"row 3, column 'x1': '1e39' is too large\.$",
    ),
    (
        "a.csv",
        "x0,x1,label\n1,2,a\n3,4\n",
        r"row 3: 2 fields, but the header has 3 columns\.$",
    ),
    (
        "a.csv",
        "x0,x1,label\n1,2,\n3,4,\n",
        r"no row has a label in the column 'label'\.$",
    ),
    ("a.csv", "x0,x0,label\n1,2,a\n", r"has more than one column called 'x0'\.$"),
    (
        "a.csv",
        "1,2,3\n4,5,6\n",
        r"has no header: its first row must name the columns, and it holds numbers\.$",
    ),
    (
        "a.csv",
        f"{'x' * 200_000},label\n1,a\n",
        r"is not a readable table \(field larger than field limit \(131072\)\)\.$",
    ),
    (
        "a.csv",
        "x0,x1,Lable\n1,2,a\n",
        r"no column 'label'\. Did you mean 'Lable'\? It has: 'x0', 'x1', 'Lable'\.$",
    ),
    (
        "a.csv",
        f"{WIDE}\n{WIDE}\n",
        r"no column 'label'\. Name another as label_column\. It has: .*'x5' and 94 more",
    ),
    (
        "a.csv",
        "sentence,label\nhello,a\n",
        r"row 2, column 'sentence': 'hello' is not a number; if it holds the texts, name",
    ),
    ("a.csv", "label\na\n", r"has neither a column 'text' nor columns of numbers\.$"),
    (
        "a.csv",
        'text,label\n"x,y\n',
        r"row 2: 1 fields, but .* 2 columns; is a quotation mark not",
    ),
    ("a.csv", "", r"has no rows: its first line must name the columns\.$"),
    ("a.csv", "text,label\n", r"has no rows\.$"),
    (
        "a.csv",
        "text,label,split\nx,y,test\n",
        r"has no train split; its rows are test\.$",
    ),
    (
        "a.csv",
        'e,label\n"[1, 2]",a\n"[1 2]",b\n',
        r"row 3, column 'e': '\[1 2\]' is not a list of numbers",
    ),
    ("a.jsonl", '{"text": "x"\n', r"row 1: not JSON \(.*delimiter\)\.$"),
    ("a.jsonl", '{"text": "x", "label": 1}\n\n[1]\n', r"row 3: not a JSON object"),
    ("a.jsonl", "[" * 100_000, r"row 1: not JSON \(it is nested too deeply\)"),
    (
        "a.jsonl",
        as_json({"text": "x", "label": 1.5}),
        r"row 1, column 'label': 1\.5 is neither text nor a whole number",
    ),
    (
        "a.jsonl",
        as_json({"text": "x", "label": True}),
        r"row 1, column 'label': True is neither text nor",
    ),
    (
        "a.jsonl",
        as_json({"text": "x", "label": 1 << 63}),
        r"row 1, column 'label': 9223372036854775808 is neither",
    ),
    (
        "a.jsonl",
        as_json({"text": 3, "label": "x"}),
        r"row 1, column 'text': 3 is not a text\.$",
    ),
    (
        "a.jsonl",
        as_json({"text": "x", "label": 1}, {"label": 2}),
        r"row 2, column 'text': there is no text\.$",
    ),
    (
        "a.jsonl",
        as_json({"text": "x", "label": 1}, {"text": "y", "label": "z"}),
        r"row 2, column 'label': 'z' and 1 in row 1: labels must be all texts or all whole numbers\.$",
    ),
    (
        "a.jsonl",
        as_json({"a": 1, "label": 1}, {"a": 1, "b": 2, "label": 1}),
        r"row 2, column 'b': the first row has no",
    ),
    (
        "a.jsonl",
        as_json({"a": True, "label": 1}),
        r"row 1, column 'a': True is not a number\.$",
    ),
    (
        "a.jsonl",
        as_json({"e": [1.5, True], "label": 1}),
        r"row 1, column 'e': True is not a number\.$",
    ),
    (
        "a.jsonl",
        as_json({"a": {"b": 1}, "label": 1}),
        r"row 1, column 'a': it is nested; a column must hold numbers",
    ),
    (
        "a.jsonl",
        as_json({"e": [1, 2], "label": 1}, {"e": [1], "label": 1}),
        r"row 2, column 'e': a list of 1 numbers, but",
    ),
    (
        "a.jsonl",
        as_json({"e": [[1]], "label": 1}),
        r"row 1, column 'e': \[1\] is not a number\.$",
    ),
    (
        "a.jsonl",
        as_json({"e": [1], "f": [1], "g": 1, "label": 1}),
        r"has several columns of lists, 'e', 'f', and 'g'; keep",
    ),
    (
        "a.jsonl",
        '{"e": [1, NaN], "label": 1}\n',
        r"row 1, column 'e': nan is not finite",
    ),
]


@pytest.mark.parametrize(("name", "content", "rule"), WRONG)
def test_errors_name_the_row_and_column(tmp_path, name, content, rule):
    (tmp_path / name).write_text(content)
    with pytest.raises(FileError, match=rule) as caught:
        load(tmp_path / name)
    assert str(caught.value).startswith(str(tmp_path / name))
    assert len(str(caught.value).replace(str(tmp_path), "")) < 200


@pytest.mark.parametrize(
    ("columns", "rule"),
    [
        (
            {"x": [1.0, None], "label": [1, 2]},
            r"row 2, column 'x': there is no number\.$",
        ),
        (
            {"x": [1.0, float("inf")], "label": [1, 2]},
            r"row 2, column 'x': inf is not finite\.$",
        ),
        (
            {"x": [1.0, 1e300], "label": [1, 2]},
            r"row 2, column 'x': 1e\+300 is too large\.$",
        ),
        (
            {"x": [{"a": 1}, {"a": 2}], "label": [1, 2]},
            r"row 1, column 'x': it is nested",
        ),
        (
            {"e": [[1.0, 2.0], [1.0]], "label": [1, 2]},
            r"row 2, column 'e': a list of 1 numbers, but the rows before have 2",
        ),
        (
            {"e": [[1.0], None], "label": [1, 2]},
            r"row 2, column 'e': None is not a list of numbers",
        ),
        (
            {"x": [1.0, 2.0], "label": [None, None]},
            r"no row has a label in the column 'label'\.$",
        ),
        (
            {"x": [1.0, 2.0], "label": [1.0, 0.5]},
            r"row 2, column 'label': 0\.5 is neither text nor a whole number\.$",
        ),
        (
            {"x": [1.0], "label": [b"a"]},
            r"row 1, column 'label': b'a' is neither text nor a whole number\.$",
        ),
    ],
)
def test_errors_in_parquet_name_the_row_and_column(tmp_path, columns, rule):
    with pytest.raises(FileError, match=rule):
        load(parquet(tmp_path / "a.parquet", **columns))


@pytest.mark.parametrize("before", [64, 70])  # a block has 64 rows
def test_lists_of_other_widths_in_a_later_block_are_found(
    tmp_path, monkeypatch, before
):
    monkeypatch.setattr(formats, "BATCH_CELLS", 1)
    path = parquet(
        tmp_path / "a.parquet",
        e=[[1.0, 2.0]] * before + [[1.0]] * 70,
        label=[1] * (before + 70),
    )
    with pytest.raises(
        FileError,
        match=rf"row {before + 1}, column 'e': a list of 1 numbers, but the rows before have 2",
    ):
        load(path)


def test_damaged_parquet_is_refused(tmp_path):
    whole = parquet(tmp_path / "a.parquet", **COLUMNS).read_bytes()
    for cut in (0, 3, len(whole) // 2, len(whole) - 1):
        (tmp_path / "b.parquet").write_bytes(whole[:cut])
        with pytest.raises(FileError, match=r"b\.parquet"):
            load(tmp_path / "b.parquet")


def test_other_encodings_are_refused_with_the_line(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes("text,label\nhello,x\nGrüße,x\n".encode("latin-1"))
    with pytest.raises(
        FileError,
        match=r"line 3: not UTF-8 \(byte 0xfc\); .*name its encoding.*encoding='latin-1'\.$",
    ):
        load(path)
    path.write_bytes("text,label\nhello,x\n".encode("utf-16"))
    with pytest.raises(FileError, match=r"is in UTF-16; .*encoding='utf-16'\.$"):
        load(path)
    path.write_bytes("x0,label\n1,ü\n".encode("latin-1"))
    with pytest.raises(FileError, match=r"line 2: not UTF-8"):
        load(path)


def test_damaged_feather_and_gzip_are_refused(tmp_path):
    for name in ("a.feather", "a.csv.gz", "a.jsonl.gz"):
        WRITERS[name](tmp_path / name)
        whole = (tmp_path / name).read_bytes()
        for cut in (0, 3, len(whole) // 2, len(whole) - 20):
            (tmp_path / name).write_bytes(whole[:cut])
            with pytest.raises(FileError, match=name.replace(".", r"\.")):
                load(tmp_path / name)


def test_a_quotation_mark_that_is_never_closed_is_named_by_its_row(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(formats, "BATCH_BYTES", 4096)
    (tmp_path / "a.csv").write_text(
        "text,label\n" + "hello,x\n" * 10 + 'hello,"x\n' + "hello,x\n" * 5000
    )
    with pytest.raises(
        FileError,
        match=r"row \d+ or later: it is longer than .*; is a quotation mark not closed\?$",
    ):
        load(tmp_path / "a.csv")


def test_blank_rows_are_left_out_and_counted(tmp_path):
    (tmp_path / "a.csv").write_text('text,label\na,x\n\n,\n"b\n\nc",y\n')
    split = load(tmp_path / "a.csv")
    assert split.inputs == ("a", "b\n\nc")
    assert list(split.names) == ["a.csv, row 2", "a.csv, row 5"]
    (tmp_path / "b.csv").write_text("text\na\n\nb\n")
    split = load(tmp_path / "b.csv", labelled=False)
    assert (split.inputs, split.names[1]) == (("a", "b"), "b.csv, row 4")


def test_a_row_is_blank_only_if_all_its_cells_are(tmp_path):
    (tmp_path / "a.csv").write_text("text,price\nhello,1\n,2\n,\nbye,3\n")
    split = load(tmp_path / "a.csv", labelled=False)
    assert split.inputs == ("hello", "", "bye")
    assert list(split.names) == [f"a.csv, row {row}" for row in (2, 3, 5)]


BOMB = """
import resource, sys
from imprint.datasets import load
import pyarrow.parquet
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    print(len(load(sys.argv[1]).inputs))
except Exception as e:
    print(e)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.skipif(
    sys.platform != "linux", reason="memory is counted in kilobytes on Linux"
)
@pytest.mark.parametrize("kind", ["texts", "labels", "numbers", "lists"])
def test_a_small_parquet_file_needs_little_memory(tmp_path, kind):
    """Encodings may expand one stored text to thousands, and one run of equal numbers to millions."""
    path, rows = tmp_path / "a.parquet", 5000
    long = pa.DictionaryArray.from_arrays(
        pa.array([0] * rows, pa.int32()), pa.array(["x" * (1 << 20)])
    )
    if kind == "numbers":
        zeros = pa.DictionaryArray.from_arrays(
            pa.array(np.zeros(40_000_000, np.int8)), pa.array([0.0])
        )
        pq.write_table(pa.table({"x": zeros, "label": zeros}), path)
    elif kind == "lists":
        offsets = pa.array(np.arange(0, 40_000_001, 400_000, dtype=np.int32))
        zeros = pa.ListArray.from_arrays(
            offsets, pa.array(np.zeros(40_000_000, np.float32))
        )
        pq.write_table(
            pa.table({"e": pa.concat_arrays([zeros] * 2), "label": ["a"] * 200}), path
        )
    else:
        short = pa.array(["a"] * rows)
        pq.write_table(
            pa.table(
                {"text": long, "label": short}
                if kind == "texts"
                else {"text": short, "label": long}
            ),
            path,
        )
    assert path.stat().st_size < 400_000
    run = subprocess.run(
        [sys.executable, "-c", BOMB, path], capture_output=True, text=True, check=True
    )
    answer, memory = run.stdout.splitlines()
    expected = {
        "texts": "5000",
        "labels": "1,048,576 characters",
        "numbers": "unpacks to",
        "lists": "unpacks to",
    }[kind]
    assert expected in answer
    assert int(memory) < 800_000  # kB


def test_rows_without_a_label_are_left_out_and_counted(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("text,label\nhello,a\nwho,\nknows, \nbye,b\n")
    split = load(path)
    assert ([split.inputs[i] for i in range(2)], split.labels.tolist()) == (
        ["hello", "bye"],
        ["a", "b"],
    )
    assert list(split.names) == ["a.csv, row 2", "a.csv, row 5"]
    assert split.omissions == ("Left out rows of a.csv without a label (2): 3, 4.",)
    numbers = load(
        parquet(
            tmp_path / "a.parquet", x=[1.0, 2.0, 3.0], label=[1.0, None, float("nan")]
        )
    )
    assert (numbers.inputs.tolist(), numbers.labels.tolist()) == ([[1.0]], [1])
    assert len(load(path, labelled=False)) == 4


@pytest.mark.parametrize(
    "content",
    [
        '[{"text": "hello", "label": "a"}, {"text": "bye", "label": "b"}]',
        '{"text": ["hello", "bye"], "label": ["a", "b"]}',
    ],
)
def test_json(tmp_path, content):
    (tmp_path / "a.json").write_text(content)
    split = load(tmp_path / "a.json")
    assert (list(split.names), split.labels.tolist()) == (
        ["a.json, row 1", "a.json, row 2"],
        ["a", "b"],
    )
    for wrong, rule in (
        ("[1, 2]", "list of objects"),
        ('{"x": [1], "label": []}', "one length"),
        ("[{", "not a readable table"),
    ):
        (tmp_path / "a.json").write_text(wrong)
        with pytest.raises(FileError, match=rule):
            load(tmp_path / "a.json")


def test_excel(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (
        ["text", "label", None],
        ["hello", "a", None],
        [None, None, None],
        ["bye", "b", None],
        ["who", None, None],
    ):
        book.active.append(row)
    book.save(tmp_path / "a.xlsx")
    split = load(tmp_path / "a.xlsx")
    assert (list(split.names), split.labels.tolist()) == (
        ["a.xlsx, row 2", "a.xlsx, row 4"],
        ["a", "b"],
    )
    (tmp_path / "a.xlsx").write_bytes(b"nonsense")
    with pytest.raises(FileError, match="not a readable workbook"):
        load(tmp_path / "a.xlsx")


def test_excel_without_its_extra_names_the_command(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    (tmp_path / "a.xlsx").write_bytes(b"x")
    with pytest.raises(
        MissingExtraError,
        match=r"need openpyxl: pip install 'weight-imprinting\[excel\]'",
    ):
        load(tmp_path / "a.xlsx")


@pytest.mark.parametrize(
    ("inputs", "labels"),
    [("X", "y"), ("embeddings", "labels"), ("features", "y"), ("X_train", "y_train")],
)
def test_arrays_of_a_pack_by_their_usual_names(tmp_path, inputs, labels):
    np.savez(
        tmp_path / "a.npz", **{inputs: np.eye(3), labels: np.array(["a", "b", "a"])}
    )
    split = load(tmp_path / "a.npz")
    assert (split.modality, split.parts, split.labels.tolist()) == (
        "embedding",
        ("train",),
        ["a", "b", "a"],
    )
    assert list(split.names) == [f"a.npz, row {i}" for i in (1, 2, 3)]
    np.savez(
        tmp_path / "b.npz",
        x_train=np.zeros((2, 4, 4), np.uint8),
        y_train=[0, 1],
        x_test=np.zeros((1, 4, 4), np.uint8),
        y_test=[0],
    )
    assert (
        load(tmp_path / "b.npz").modality,
        load(tmp_path / "b.npz", "test").found,
    ) == (
        "image",
        "1 image of 1 class (b.npz)",
    )


@pytest.mark.parametrize("column", ["label_column", "text_column"])
def test_columns_of_data_that_are_not_a_table_are_refused(column, tmp_path):
    (tmp_path / "photos/cat").mkdir(parents=True)
    for data in ("digits", str(tmp_path / "photos")):
        with pytest.raises(
            ParameterError,
            match=rf"load\('{data}', {column}='kind'\): columns go with a table",
        ):
            load(data, **{column: "kind"})
    with pytest.raises(FileError, match="There is no file or folder"):
        load(tmp_path / "misspelt.csv", **{column: "kind"})


@pytest.mark.parametrize("header", ["Text,Label", " text ,LABELS", "TEXT,Target"])
def test_headers_are_recognised_in_any_case(header, tmp_path):
    (tmp_path / "a.csv").write_text(f"{header}\nhello,x\nbye,y\n")
    split = load(tmp_path / "a.csv")
    assert (list(split.inputs), split.labels.tolist()) == (["hello", "bye"], ["x", "y"])
    # the exact name comes first
    (tmp_path / "b.csv").write_text(f"{header},label\nhello,x,1\nbye,y,2\n")
    assert load(tmp_path / "b.csv").labels.tolist() == [1, 2]


@pytest.mark.parametrize("column", ["label", "labels", "category", "target", "y"])
def test_files_and_python_tables_have_the_same_label_columns(column, tmp_path):
    table = {"text": ["hello", "bye"], column: ["a", "b"]}
    rows = zip(table["text"], table[column])
    (tmp_path / "a.csv").write_text(text([table, *rows]))
    assert load(tmp_path / "a.csv").labels.tolist() == ["a", "b"]
    assert split_of_values(table).labels.tolist() == ["a", "b"]


def test_x_and_y_of_unlabelled_rows_are_coordinates(tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n1,2\n3,4\n")
    assert load(tmp_path / "a.csv", labelled=False).inputs.tolist() == [[1, 2], [3, 4]]
    assert load(tmp_path / "a.csv").labels.tolist() == [2, 4]
    (tmp_path / "b.csv").write_text("feature,y\n1,2\n3,4\n")
    assert load(tmp_path / "b.csv", labelled=False).inputs.tolist() == [[1], [3]]


def test_csv_may_be_separated_by_tabs(tmp_path):
    (tmp_path / "a.csv").write_text('text\tlabel\nhello, you; there\tx\n"a\tb"\ty\n')
    split = load(tmp_path / "a.csv")
    assert list(split.inputs) == ["hello, you; there", "a\tb"]
    # a separator within quotation marks is a part of the name
    (tmp_path / "b.csv").write_text('"a\tb",label\n1,x\n2,y\n')
    assert load(tmp_path / "b.csv").inputs.tolist() == [[1], [2]]
    (tmp_path / "c.csv").write_text('"a,b";label\n1;x\n2;y\n')
    assert load(tmp_path / "c.csv").inputs.tolist() == [[1], [2]]


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16", "utf-8"])
@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.jsonl", "a.json"])
def test_a_stated_encoding(encoding, name, tmp_path):
    content = {
        "a.csv": "text,label\nGrüße,schön\nhello,x\n",
        "a.jsonl": '{"text": "Grüße", "label": "schön"}\n{"text": "hello", "label": "x"}\n',
        "a.json": '{"text": ["Grüße", "hello"], "label": ["schön", "x"]}',
    }[name.removesuffix(".gz")].encode(encoding)
    (tmp_path / name).write_bytes(
        gzip.compress(content) if name.endswith(".gz") else content
    )
    split = load(tmp_path / name, encoding=encoding)
    assert list(split.inputs) == ["Grüße", "hello"]
    assert split.labels.tolist() == ["schön", "x"]


def test_wrong_encodings_are_refused(tmp_path):
    (tmp_path / "a.csv").write_bytes("text,label\nhello,x\nGrüße,x\n".encode())
    with pytest.raises(FileError, match=r"a\.csv, line 3: not ascii \(byte 0xc3\)"):
        load(tmp_path / "a.csv", encoding="ascii")
    for unusable in ("klingon", "rot13", "base64"):
        with pytest.raises(
            ParameterError, match=rf"encoding='{unusable}'\): there is no"
        ):
            load(tmp_path / "a.csv", encoding=unusable)
    parquet(tmp_path / "a.parquet", **COLUMNS)
    with pytest.raises(ParameterError, match="encodings go with"):
        load(tmp_path / "a.parquet", encoding="latin-1")
    with pytest.raises(ParameterError, match="encodings go with"):
        load("digits", encoding="latin-1")
