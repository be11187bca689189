"""Results are read as written or refused: flipped bits, truncated files, files of other programs."""

import hashlib
import io
import os
import time
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from imprint.core.errors import FileError, ImprintError, ParameterError
from imprint.core.files.atomic import write_checked
from imprint.embeddings import write_pack
from imprint.report.results_file import results_table
from imprint.study import Grid, Held, Packs, Study, plan, run
from imprint.study.evaluate import evaluate
from imprint.study.store import Store

LONGEST = 5.0  # maximum seconds per file
rng = np.random.default_rng(1)
Y = np.repeat(np.arange(3), 12)
X = (rng.normal(size=(3, 5))[Y] + rng.normal(size=(36, 5))).astype(np.float32)
SOURCE = Held({("a", "one"): (X, Y, X[::3], Y[::3])})
STUDY = Study(
    backbones="a", datasets="one", grid=Grid(generator=["mean", "random"], k=[1, 3])
)


@pytest.fixture
def folder(tmp_path):
    run(STUDY, tmp_path, source=SOURCE, workers=1)
    return tmp_path


def sentence(call):
    """The error message of a call; None if it succeeds."""
    try:
        call()
    except ImprintError as e:
        return str(e)


def flipped(content, seed):
    """The same bytes with one flipped bit."""
    place = int(np.random.default_rng(seed).integers(8 * len(content)))
    changed = bytearray(content)
    changed[place // 8] ^= 1 << place % 8
    return bytes(changed)


def test_300_flipped_bits_of_a_shard_are_refused_in_one_sentence(folder):
    shard = Store(folder).shards()[0]
    content = shard.read_bytes()
    for seed in range(300):
        shard.write_bytes(flipped(content, seed))
        for read in (Store(folder).done, Store(folder).table):
            with pytest.raises(
                FileError,
                match=f"{shard.name}: this shard is damaged; delete it and run",
            ) as e:
                read()
            assert "\n" not in str(e.value)
    shard.write_bytes(content[:-1])
    with pytest.raises(FileError, match="damaged"):
        STUDY.results(folder)


def mutant(table, content, draw):
    """The bytes of a foreign shard: other columns, types, values or texts, or not a Parquet file."""
    name = str(draw.choice(table.column_names))
    place, column = table.column_names.index(name), table[name]
    kind = draw.integers(9)
    if kind == 0:
        table = table.drop_columns([name])
    elif kind == 1:
        table = table.rename_columns(
            [n if n != name else "other" for n in table.column_names]
        )
    elif kind == 2:
        values = [[None], [1], ["x"], [b"short"], [1.5], [[1]], [True], [2**62]][
            draw.integers(8)
        ]
        table = table.set_column(place, name, pa.array(values * len(table)))
    elif kind == 3:
        table = table.append_column("more", column)
    elif kind == 4:
        table = table.slice(0, int(draw.integers(len(table) + 1)))
    elif kind == 5:
        table = pa.concat_tables([table, table])
    elif kind == 6:
        columns = draw.permutation(table.column_names).tolist()
        table = table.select(columns)
    elif kind == 7:
        table = table.set_column(
            place, name, pa.array([None] * len(table), type=column.type)
        )
    else:
        cut = int(draw.integers(len(content)))
        return [
            content[:cut],
            content[cut:],
            flipped(content, cut),
            draw.bytes(300),
            b"",
        ][draw.integers(5)]
    raw = io.BytesIO()
    pq.write_table(table, raw)
    return raw.getvalue()


def test_300_foreign_shards(folder):
    """Shards with a correct digest in their name are read with valid values, or refused in one sentence."""
    shard = Store(folder).shards()[0]
    content, whole, read = shard.read_bytes(), Store(folder).table(), 0
    original = pq.read_table(io.BytesIO(content))
    shard.unlink()
    for seed in range(300):
        damaged = mutant(original, content, np.random.default_rng(seed))
        path = shard.with_name(
            f"{shard.stem.partition('-')[0]}-{hashlib.sha256(damaged).hexdigest()[:32]}.parquet"
        )
        path.write_bytes(damaged)
        start = time.monotonic()
        message = sentence(lambda: (Store(folder).done(), STUDY.results(folder)))
        if message is None:
            read += 1
            table = STUDY.results(folder)
            assert table.schema == whole.schema
            assert len(table) <= len(whole)
            assert not any(column.null_count for column in table.columns)
        else:
            assert (
                message
                == f"{path}: this shard is damaged; delete it and run the study again."
            )
        assert time.monotonic() - start < LONGEST, seed
        path.unlink()
    assert 20 < read < 250, (
        "the mutants must neither all be refused nor all be harmless"
    )


def test_300_flipped_bits_of_a_manifest_are_refused_in_one_sentence(folder):
    path = folder / "manifest.json"
    content, whole = path.read_bytes(), Store(folder).manifest()
    for seed in range(300):
        path.write_bytes(flipped(content, seed))
        message = sentence(Store(folder).manifest)
        if message is None:  # white space, or an equivalent JSON escape
            assert Store(folder).manifest() == whole
        else:
            assert (
                message
                == f"{path}: it is damaged or was altered; its checksum does not match."
            )
    path.write_text("[" * 5000)
    with pytest.raises(FileError, match=r"manifest\.json: it is damaged"):
        Store(folder).manifest()


def test_a_damaged_note_of_a_failure_is_named(folder):
    (folder / "failures" / "abc.json").write_text('{"unit": 3')
    with pytest.raises(FileError, match=r"abc\.json: it is damaged"):
        Store(folder).failures()


@pytest.mark.parametrize(
    "change",
    [
        {"study": 3},
        {"study": None},
        {"embeddings": None},
        {"libraries": 3},
        {"python": []},
    ],
)
def test_a_sealed_manifest_of_something_else_is_one_sentence(folder, change):
    path = folder / "manifest.json"
    write_checked(path, {**Store(folder).manifest(), **change})
    (key,) = change
    with pytest.raises(
        FileError,
        match=rf"manifest\.json: its '{key}' is missing or not what this imprint writes there",
    ):
        STUDY.results(folder)
    write_checked(folder / "failures" / "abc.json", {"unit": "a", "reason": 3})
    with pytest.raises(FileError, match=r"abc\.json: its 'experiments' is missing"):
        Store(folder).failures()


@pytest.mark.parametrize(
    "study",
    [
        {},
        {"seeds": [-1]},
        {"seeds": 2**70},
        {"grid": {"k": "x"}},
        {"recipes": ["nobody1999"]},
    ],
)
def test_a_sealed_manifest_with_a_bad_study_is_named(folder, study):
    manifest = Store(folder).manifest()
    write_checked(
        folder / "manifest.json",
        {**manifest, "study": {**manifest["study"], **study} if study else study},
    )
    for read in (Store(folder).study, lambda: results_table(folder)):
        with pytest.raises(FileError, match=r"manifest\.json: \w.*\.$"):
            read()


@pytest.mark.parametrize(
    "content", ['{"name": "a web page", "icons": []}', "", '{"format": 2}']
)
def test_a_foreign_manifest_is_not_overwritten(tmp_path, content):
    (tmp_path / "manifest.json").write_text(content)
    with pytest.raises(
        FileError,
        match=r"Cannot write .*manifest\.json: it is not the manifest of a study",
    ):
        run(STUDY, tmp_path, source=SOURCE, workers=1)
    assert (tmp_path / "manifest.json").read_text() == content
    assert [path.name for path in tmp_path.iterdir()] == ["manifest.json"]


def test_only_partial_files_of_imprint_are_removed(tmp_path):
    strange = [
        ".pre-commit-config.yaml",
        ".env.local",
        ".eslintrc.json",
        ".manifest.json.x",
        "shards/.a.b",
        "a.imprint-partial",
    ]
    halves = [
        ".manifest.json.abc.imprint-partial",
        "shards/.x.parquet.q_1.imprint-partial",
    ]
    (tmp_path / "shards").mkdir()
    for name in strange + halves:
        (tmp_path / name).write_text("mine")
    run(STUDY, tmp_path, source=SOURCE, workers=1)
    assert all((tmp_path / name).read_text() == "mine" for name in strange)
    assert not any((tmp_path / name).exists() for name in halves)


@pytest.fixture
def packs(tmp_path):
    write_pack(tmp_path / "a-one.npz", X, Y, X[:6], Y[:6])
    return Packs(str(tmp_path), str(tmp_path / "cache"))


def test_a_damaged_cache_is_unpacked_again(packs, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda handle: None)  # do not wait for the disk
    whole = [np.array(part) for part in packs.open("a", "one")]
    (place,) = (tmp_path / "cache").iterdir()
    contents = {path: path.read_bytes() for path in place.iterdir()}
    assert len(contents) == 5
    for path, content in contents.items():
        for damaged in (
            *(flipped(content, seed) for seed in range(60)),
            content[:-1],
            b"",
        ):
            path.write_bytes(damaged)
            again = packs.open("a", "one")
            assert all(
                np.array_equal(ours, theirs) for ours, theirs in zip(again, whole)
            )
    path.unlink()
    assert np.array_equal(packs.open("a", "one").X, whole[0])


def test_a_unit_refuses_other_embeddings_than_it_was_planned_for(packs):
    (unit,) = plan(replace(STUDY, grid=(), recipes="qi2018"), packs).units
    assert len(evaluate(unit).columns["accuracy"]) == 1
    write_pack(f"{packs.folder}/a-one.npz", X + 1, Y, X[::3], Y[::3])
    with pytest.raises(
        ImprintError, match="the embeddings have changed since the study was planned"
    ):
        evaluate(unit)


def test_other_contents_of_the_same_size_and_time_are_noticed(packs, tmp_path):
    first, path = packs.open("a", "one"), tmp_path / "a-one.npz"
    state, size = path.stat(), path.stat().st_size
    for swapped in (X[:, ::-1], X[:, [1, 0, 2, 3, 4]], X[:, [0, 2, 1, 3, 4]]):
        write_pack(path, swapped, Y, X[:6], Y[:6])
        with open(path, "ab") as f:
            f.truncate(size) if path.stat().st_size > size else f.write(
                b"\0" * (size - path.stat().st_size)
            )
        os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
        try:
            assert packs.open("a", "one").fingerprint != first.fingerprint
        except FileError:
            continue  # truncated, it is not a pack; this is detected too


@pytest.mark.parametrize("name", ["../packs/a", "/etc/a", "sub/a", "..", "a\\b", "a\0"])
def test_a_backbone_is_the_name_of_a_file(packs, name):
    with pytest.raises(ParameterError):
        packs.open(name, "one")
