import zipfile

import pytest
from PIL import Image

from imprint.datasets import load
from imprint.datasets.folder import folder_labels


def files(*folders):
    return [f"{folder}/{n}.png" for folder in folders for n in (1, 2)]


@pytest.mark.parametrize(
    ("folders", "tree", "labels"),
    [
        (["cat", "dog"], None, ["cat", "dog"]),
        (
            ["animal/cat", "animal/dog", "sky"],
            None,
            ["animal/cat", "animal/dog", "sky"],
        ),
        (
            ["animal/cat", "animal/dog", "vehicle/car"],
            None,
            ["animal/cat", "animal/dog", "vehicle/car"],
        ),
        (["animal/cat", "animal/dog", "sky"], False, ["animal", "animal", "sky"]),
        (["cat/2023", "cat/2024", "dog/2023-05-01"], None, ["cat", "cat", "dog"]),
        (["even/0", "even/2", "odd/1"], True, ["even/0", "even/2", "odd/1"]),
        (["cat/images", "dog/images"], None, ["cat", "dog"]),
        (["cat/images", "dog/images"], True, ["cat/images", "dog/images"]),
        (["cat", "cat/old", "cat/new", "dog"], None, ["cat", "cat", "cat", "dog"]),
        (["cat", "cat/old", "cat/new", "dog"], True, ["cat", "cat", "cat", "dog"]),
        (
            ["animal/cat/2023", "animal/cat/2024", "animal/dog/2023"],
            None,
            ["animal/cat", "animal/cat", "animal/dog"],
        ),
        (["0", "1"], None, ["0", "1"]),
        (["cat/home", "cat/away", "emu"], ["cat", "emu"], ["cat", "cat", "emu"]),
        (["animal/cat"], ["animal/cat", "animal/dog"], ["animal/cat"]),
        (
            ["animal/emu", "cat/images"],
            ["animal/cat", "animal/dog"],
            ["animal/emu", "cat"],
        ),
        (
            ["even/0", "odd/3", "odd/5"],
            ["even/0", "odd/1"],
            ["even/0", "odd/3", "odd/5"],
        ),
        (
            ["animal/cat/home", "animal/cat/away"],
            ["animal/cat", "animal/dog"],
            ["animal/cat", "animal/cat"],
        ),
    ],
)
def test_how_nested_folders_are_read(folders, tree, labels):
    assert folder_labels(files(*folders), tree)[0] == [
        label for label in labels for _ in (1, 2)
    ]


def test_the_detected_labels_are_reported_unless_they_were_given():
    assert folder_labels(files("cat", "dog"))[1] == ()
    assert folder_labels(files("animal/cat", "animal/dog", "sky"))[1] == (
        "Nested folders are a tree of classes: animal/cat, animal/dog; --flat (tree=False) makes each top folder one "
        "class.",
    )
    assert folder_labels(files("cat/2023", "cat/2024"))[1] == (
        "Sub-folders such as cat/2023 belong to their class cat; --tree (tree=True) makes each a class.",
    )
    for stated in (True, False):
        assert (
            folder_labels(files("animal/cat", "animal/dog", "cat/2023"), stated)[1]
            == ()
        )


@pytest.fixture
def photos(tmp_path):
    for i, name in enumerate(
        ["train/animal/cat/1", "train/animal/dog/1", "train/sky/1", "test/animal/cat/2"]
    ):
        path = tmp_path / "photos" / f"{name}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (6, 5), (i, i, i)).save(path)
    (tmp_path / "photos/train/plant").mkdir()
    return tmp_path / "photos"


def test_the_test_part_is_read_as_the_training_part(photos):
    train = load(photos)
    assert train.classes == ("animal/cat", "animal/dog", "sky")
    assert load(photos, "test").labels.tolist() == ["animal/cat"]
    assert load(photos, "test", tree=False).labels.tolist() == ["animal"]
    assert train.omissions[1:] == ("Ignored 1 folder without images: plant.",)


def test_a_zip_is_read_as_a_folder(photos, tmp_path):
    with zipfile.ZipFile(tmp_path / "photos.zip", "w") as archive:
        for path in sorted(photos.rglob("*.png")):
            archive.write(path, path.relative_to(photos))
    assert load(tmp_path / "photos.zip").classes == ("animal/cat", "animal/dog", "sky")
    assert load(tmp_path / "photos.zip", "test").labels.tolist() == ["animal/cat"]
    assert load(tmp_path / "photos.zip", tree=False).classes == ("animal", "sky")
