"""Blocks as an axis: every result is that of a classifier with the same blocks."""

import numpy as np
import pytest

from imprint import ImprintClassifier
from imprint.core.errors import FileError, ParameterError
from imprint.embeddings.pack import read_pack, write_pack
from imprint.method import PARTS
from imprint.study import Packs, Study, run
from imprint.study.blocks import open_data

WIDTHS = {"last": 6, "deep": 5, "shallow": 7}
RECIPES = (
    "l2 / mean / l2 / l2 / max",
    "none / kmeans(k=3) / none / none / nearest(m=3)",
    "none / all / l2 / l2 / kernel",
    "l2 / kmeans(k=3) / quantile / none / max",
)
SELECTED = {
    "all": range(18),
    "last": range(6),
    "last+shallow": [*range(6), *range(11, 18)],
    "shallow": range(11, 18),
}
STATED = {"all": (6, 5, 7), "last": None, "last+shallow": (6, 7), "shallow": None}


@pytest.fixture
def folder(tmp_path):
    """A pack whose blocks have different scales and know different classes."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(4, 18)) * np.repeat([1.0, 40.0, 0.1], [6, 5, 7])
    y = np.arange(80) % 4
    noise = rng.normal(size=(2, 80, 18)) * np.repeat([3.0, 90.0, 0.1], [6, 5, 7])
    X, X_test = (centres[y] + part for part in noise)
    write_pack(tmp_path / "net-set.npz", X, y, X_test, y, blocks=WIDTHS)
    return tmp_path


def study(folder, **keys):
    return Study(embeddings=str(folder), backbones=["net"], datasets=["set"], **keys)


def test_results_are_those_of_a_classifier_with_these_blocks(folder, tmp_path):
    given = study(folder, blocks=list(SELECTED), recipes=RECIPES)
    run(given, tmp_path / "out", workers=1)
    table = given.results(tmp_path / "out").to_pandas()
    assert len(table) == len(SELECTED) * len(RECIPES)
    pack = read_pack(folder / "net-set.npz")
    for _, row in table.iterrows():
        selection = row["backbone"].partition(":")[2]
        columns = list(SELECTED[selection])
        parts = {part: row[part] for part in PARTS}
        classifier = ImprintClassifier(
            **parts,
            blocks=STATED[selection],
            calibrate=False,
        )
        classifier.fit(pack.X[:, columns], pack.y)
        expected = classifier.score(pack.X_test[:, columns], pack.y_test)
        assert row["accuracy"] == expected, (selection, parts)


def test_blocks_make_a_difference(folder, tmp_path):
    given = study(folder, blocks=["last", "all"], recipes=RECIPES[:1])
    run(given, tmp_path / "out", workers=1)
    accuracies = given.results(tmp_path / "out").to_pandas().set_index("backbone")
    last, whole = accuracies.loc[["net:last", "net:all"], "accuracy"]
    assert whole > last + 0.1


def test_without_a_selection_all_blocks_take_part(folder, tmp_path):
    whole = study(folder, recipes=RECIPES[:1])
    run(whole, tmp_path / "out", workers=1)
    given = study(folder, blocks=["all"], recipes=RECIPES[:1])
    run(given, tmp_path / "all", workers=1)
    results = (
        each.results(tmp_path / name).to_pandas()["accuracy"].tolist()
        for each, name in ((whole, "out"), (given, "all"))
    )
    assert next(results) == next(results)


def test_a_pack_without_blocks_is_its_last_layer(tmp_path):
    X = np.eye(4).repeat(3, axis=0)
    y = np.arange(12) // 3
    write_pack(tmp_path / "net-set.npz", X, y, X, y)
    source = Packs(str(tmp_path))
    whole = open_data(source, "net", "set")
    for selection in ("last", "all"):
        selected = open_data(source, f"net:{selection}", "set")
        assert selected.fingerprint == whole.fingerprint
        assert np.array_equal(selected.X, whole.X)
    with pytest.raises(ParameterError, match=r"Unknown block 'deep'. Known: last"):
        open_data(source, "net:deep", "set")


def test_selections_are_checked(folder):
    source = Packs(str(folder))
    with pytest.raises(ParameterError, match=r"Did you mean 'deep'\?"):
        open_data(source, "net:last+dep", "set")
    with pytest.raises(ParameterError, match="net:last\\+last, set: a block is"):
        open_data(source, "net:last+last", "set")


def test_every_selection_has_its_own_fingerprint_and_names(folder):
    source = Packs(str(folder))
    opened = {text: open_data(source, f"net:{text}", "set") for text in SELECTED}
    assert len({data.fingerprint for data in opened.values()}) == len(SELECTED)
    assert opened["last+shallow"].block_names == ("last", "shallow")
    assert opened["last+shallow"].blocks == (6, 7)
    assert opened["shallow"].blocks == ()


@pytest.mark.parametrize("names", [["a", "b"], ["a", "b", "b"]])
def test_names_that_do_not_match_the_blocks_are_refused(folder, names):
    with np.load(folder / "net-set.npz") as stored:
        arrays = dict(stored) | {"block_names": np.array(names)}
    np.savez(folder / "net-set.npz", **arrays)
    with pytest.raises(FileError, match="block_names must be 3 different texts"):
        read_pack(folder / "net-set.npz")
