"""Labelled embeddings with their inputs, from one or several splits."""

import numpy as np
import pytest
from PIL import Image

from imprint import Imprinter, datasets
from imprint.core.errors import ImprintError, ParameterError
from imprint.datasets import Split
from imprint.evaluation.labelled_rows import all_splits, count_training_rows, gather


@pytest.fixture(autouse=True)
def temporary_home(tmp_path, monkeypatch):
    monkeypatch.setenv("IMPRINT_HOME", str(tmp_path / "home"))


@pytest.fixture
def data(tmp_path):
    """A folder with a train and a test part, and an unreadable file in each."""
    rng = np.random.default_rng(0)
    for part in ("train", "test"):
        for label in ("a", "b"):
            folder = tmp_path / "data" / part / label
            folder.mkdir(parents=True)
            for i in range(3):
                Image.fromarray(rng.integers(0, 255, (8, 8), dtype=np.uint8)).save(
                    folder / f"{i}.png"
                )
        (tmp_path / "data" / part / "a" / "1x.png").write_bytes(b"not an image")
    return tmp_path / "data"


def test_paths_labels_and_inputs_belong_to_the_same_rows(data):
    model = Imprinter("raw", cache=False)
    rows = gather(model, all_splits(str(data)), root=str(data))
    assert len(rows.X) == len(rows.y) == len(rows.paths) == 12
    assert [one.name for one in rows.skipped] == [
        str(data / part / "a" / "1x.png") for part in ("train", "test")
    ]
    for i, path in enumerate(rows.paths):
        assert rows.relative(path) == path.removeprefix(f"{data}/")
        assert rows.y[i] == path.split("/")[-2]
        np.testing.assert_array_equal(
            rows.inputs(i)[..., 0], np.asarray(Image.open(path))
        )
        np.testing.assert_array_equal(rows.X[i], model.look([path]).X[0])
    assert rows.caption(rows.paths[7]) == rows.relative(rows.paths[7])


def test_the_caption_of_a_text_has_its_words(tmp_path):
    (tmp_path / "mails.csv").write_text(
        'text,label\nI lost my card,card\nwhere is\x1b it,lost\n"\n my\n card",card\n'
    )
    rows = gather(
        Imprinter("minilm", cache=False),
        all_splits(str(tmp_path / "mails.csv")),
        root="mails.csv",
    )
    assert rows.paths == ["mails.csv, row 2", "mails.csv, row 3", "mails.csv, row 4"]
    assert rows.caption("mails.csv, row 2") == "mails.csv, row 2: I lost my card"
    assert "\x1b" not in rows.caption("mails.csv, row 3")
    assert rows.caption(rows.paths[2]).endswith(": my card")


def test_labels_of_a_model_of_tags_are_label_sets(tmp_path):
    X = np.random.default_rng(0).normal(size=(6, 4))
    single = Split(
        X,
        np.array(["a|b", "c"] * 3),
        [str(i) for i in range(6)],
        ("a|b", "c"),
        "embedding",
    )
    tags = datasets.Split(
        X,
        np.array(["a|b", "c"] * 3),
        single.names,
        ("a", "b", "c"),
        "embedding",
        tags=True,
    )
    model = Imprinter().fit(tags)
    assert gather(model, [tags]).y.tolist() == ["a|b", "c"] * 3
    assert gather(model, [tags]).tags == ("a", "b", "c")
    assert gather(model, [single]).y.tolist() == ["a\\|b", "c"] * 3
    with pytest.raises(
        ParameterError,
        match="The data have tags, and the model has one label per input",
    ):
        gather(Imprinter().fit(single), [tags])


def test_data_without_labels_or_without_readable_inputs_are_refused(data):
    with pytest.raises(
        ParameterError, match="no labels, so there is nothing to compare with"
    ):
        gather(Imprinter("raw"), [datasets.load_files([data])])
    for path in data.rglob("*.png"):
        path.write_bytes(b"")
    with pytest.raises(
        ImprintError,
        match=r"Nothing can be read; the first failure is .*train/a/0\.png",
    ):
        gather(Imprinter("raw"), all_splits(str(data)))


def test_training_rows_are_counted_exactly_while_the_model_has_all_of_them():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 6)), np.repeat(["a", "b"], 150)
    few = np.concatenate([X[:40], X[150:190]])
    model = Imprinter().fit(few, np.repeat(["a", "b"], 40))
    assert count_training_rows(model, np.concatenate([3 * few[:7], X[50:60]])) == (
        7,
        True,
    )
    large = Imprinter(generator="kmeans(k=2)").fit(X, y)
    count, exact = count_training_rows(
        large, np.concatenate([X, rng.normal(size=(9, 6))])
    )
    assert (200 <= count < 300, exact) == (True, False)
    uncalibrated = Imprinter(generator="all", calibrate=False).fit(X, y)
    assert count_training_rows(uncalibrated, X) == (300, True)
    assert count_training_rows(uncalibrated, np.concatenate([X, X + 1])) == (300, False)
