"""What is read back is what was written: flipped bits, cut files, other people's files."""

import json
import os

import numpy as np
import pytest

from imprint.core.errors import FileError, ImprintError, ParameterError
from imprint.embeddings import write_pack
from imprint.study import Grid, Held, Packs, Study, run
from imprint.study.store import Store

rng = np.random.default_rng(1)
Y = np.repeat(np.arange(3), 12)
X = (rng.normal(size=(3, 5))[Y] + rng.normal(size=(36, 5))).astype(np.float32)
SOURCE = Held({("a", "one"): (X, Y, X[::3], Y[::3])})
STUDY = Study(backbones="a", datasets="one", grid=Grid(generator=["mean", "random"], k=[1, 3]))


@pytest.fixture
def folder(tmp_path):
    run(STUDY, tmp_path, source=SOURCE, workers=1)
    return tmp_path


def sentence(call):
    """What a call is refused with; None where it is not."""
    try:
        call()
    except ImprintError as e:
        return str(e)


def flipped(content, seed):
    """The same with one bit the other way round."""
    place = int(np.random.default_rng(seed).integers(8 * len(content)))
    changed = bytearray(content)
    changed[place // 8] ^= 1 << place % 8
    return bytes(changed)


def test_300_flipped_bits_of_a_shard_are_300_sentences(folder):
    shard = Store(folder).shards()[0]
    content = shard.read_bytes()
    for seed in range(300):
        shard.write_bytes(flipped(content, seed))
        for read in (Store(folder).done, Store(folder).table):
            with pytest.raises(FileError, match=f"{shard.name}: this shard is damaged; delete it and run") as e:
                read()
            assert "\n" not in str(e.value)
    shard.write_bytes(content[:-1])
    with pytest.raises(FileError, match="damaged"):
        STUDY.results(folder)


def test_300_flipped_bits_of_a_manifest_are_300_sentences(folder):
    path = folder / "manifest.json"
    content, whole = path.read_bytes(), Store(folder).manifest()
    for seed in range(300):
        path.write_bytes(flipped(content, seed))
        said = sentence(Store(folder).manifest)
        if said is None:  # white space, or a letter as JSON may also write it
            assert Store(folder).manifest() == whole
        else:
            assert said == f"{path}: it is damaged or was altered; its checksum does not match."
    path.write_text("[" * 5000)
    with pytest.raises(FileError, match=r"manifest\.json: it is damaged"):
        Store(folder).manifest()


def test_a_damaged_note_of_a_failure_is_named(folder):
    (folder / "failures" / "abc.json").write_text('{"unit": 3')
    with pytest.raises(FileError, match=r"abc\.json: it is damaged"):
        Store(folder).failures()


def test_only_our_own_halves_are_removed(tmp_path):
    strange = [
        ".pre-commit-config.yaml",
        ".env.local",
        ".eslintrc.json",
        ".manifest.json.x",
        "shards/.a.b",
        "a.imprint-partial",
    ]
    halves = [".manifest.json.abc.imprint-partial", "shards/.x.parquet.q_1.imprint-partial"]
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


def test_a_damaged_cache_is_unpacked_anew(packs, tmp_path):
    whole = [np.array(part) for part in packs.open("a", "one")]
    (place,) = (tmp_path / "cache").iterdir()
    contents = {path: path.read_bytes() for path in place.iterdir()}
    assert len(contents) == 5
    for path, content in contents.items():
        for damaged in (*(flipped(content, seed) for seed in range(20)), content[:-1], b""):
            path.write_bytes(damaged)
            again = packs.open("a", "one")
            assert all(np.array_equal(ours, theirs) for ours, theirs in zip(again, whole))
    path.unlink()
    assert np.array_equal(packs.open("a", "one").X, whole[0])


def test_other_contents_of_the_same_size_and_time_are_noticed(packs, tmp_path):
    first, path = packs.open("a", "one"), tmp_path / "a-one.npz"
    state, size = path.stat(), path.stat().st_size
    for swapped in (X[:, ::-1], X[:, [1, 0, 2, 3, 4]], X[:, [0, 2, 1, 3, 4]]):
        write_pack(path, swapped, Y, X[:6], Y[:6])
        with open(path, "ab") as f:
            f.truncate(size) if path.stat().st_size > size else f.write(b"\0" * (size - path.stat().st_size))
        os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
        try:
            assert packs.open("a", "one").fingerprint != first.fingerprint
        except FileError:
            continue  # cut short, it is no pack any more: that is noticed too


@pytest.mark.parametrize("name", ["../packs/a", "/etc/a", "sub/a", "..", "a\\b", "a\0"])
def test_a_backbone_is_the_name_of_a_file(packs, name):
    with pytest.raises(ParameterError):
        packs.open(name, "one")


SPECS = {
    "name: 2024-01-01": "name must be text",
    "name: [a]": "name must be text",
    "embeddings: 5": "embeddings must be text",
    "backbones: [[a, b]]": "backbones must be text",
    "backbones: &a [*a]": "backbones must be text",
    "backbones: {a: 1}": "backbones must be text",
    "datasets: [1]": "datasets must be text",
    "tasks: [{a: b}]": "tasks must be a text such as",
    "seeds: [9223372036854775808]": r"seeds must be int >= 0 and below 2\*\*63",
    "seeds: [1.5]": "seeds must be int",
    "seeds: yes": "seeds must be int",
    "shots: [0]": "shots must be int >= 1",
    "recipes: [[qi2018]]": "recipes must be text",
    "rules: [{a: 1}]": "rules must be text",
    "grid: [3]": "grid must be a mapping",
    "grid: {generator: [[mean]]}": "generator must be a text such as",
    "grid: {generator: {mean: 1}}": "generator must be a text such as",
    "grid: {k: [a]}": "k must be int >= 1",
    "grid: {k: 9223372036854775808}": "k must be int >= 1",
    "grid: &g {generator: [*g]}": "generator must be a text such as",
    "? [a]\n: b": "not YAML",
    "2024-01-01: 3": "Unknown key of a study",
    "name: 2024-13-99": "not YAML",
    "seeds: " + "[" * 3000 + "]" * 3000: "not YAML",
    "a: &a [x]\nb: &b [*a, *a]\nbackbones: [*b, *b]": "Unknown key of a study 'a'",
    "- 1": "A study is a mapping",
    "\x00": "not YAML",
}


@pytest.mark.parametrize("text", SPECS, ids=lambda text: text[:24])
def test_a_bad_spec_is_one_sentence(tmp_path, text):
    given = {"backbones": "a", "datasets": "one", "recipes": "qi2018"}
    rest = "".join(f"{key}: {value}\n" for key, value in given.items() if f"{key}:" not in text)
    whole = text if text.startswith(("-", "?", "\x00")) else f"{text}\n{rest}"
    (tmp_path / "study.yaml").write_text(whole)
    with pytest.raises(ImprintError, match=SPECS[text]) as e:
        Study.read(tmp_path / "study.yaml")
    assert "\n" not in str(e.value)
    assert len(str(e.value)) < 600


def test_500_mutated_specs_are_read_or_refused(tmp_path):
    plain = {**STUDY.to_json(), "embeddings": "packs", "recipes": ["qi2018"]}
    wild = [None, -1, 2**70, 1.5, "", "a\n", [], [[]], {}, {"k": []}, True, "kmeans(", "l2 / mean", ["mean"] * 9]
    draw = np.random.default_rng(0)
    for _ in range(500):
        changed = json.loads(json.dumps(plain))
        for _ in range(draw.integers(1, 4)):
            where = changed["grid"][0] if draw.random() < 0.4 and isinstance(changed["grid"], list) else changed
            where = where if isinstance(where, dict) else changed
            where[str(draw.choice(sorted(where)))] = wild[draw.integers(len(wild))]
        (tmp_path / "study.json").write_text(json.dumps(changed))
        said = sentence(lambda: Study.read(tmp_path / "study.json").methods)
        assert said is None or "\n" not in said
