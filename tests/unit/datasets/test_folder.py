import importlib.util
import os
import pickle
import shutil
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from imprint.core.errors import FileError
from imprint.datasets import UnreadableInput, files, load, load_files


@pytest.fixture(autouse=True)
def own_home(tmp_path, monkeypatch):
    monkeypatch.setenv("IMPRINT_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def image(path, shade=0, size=(6, 5)):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, (shade, shade, shade)).save(path, "PNG")


@pytest.fixture
def photos(tmp_path):
    root = tmp_path / "photos"
    for label, shades in {"zebra": (1, 2), "Äffin 猫": (3,), "cat": (4, 5, 6)}.items():
        for shade in shades:
            image(root / label / f"{shade}.png", shade)
    return root


def test_one_sub_folder_is_one_class(photos):
    split = load(photos)
    assert split.classes == ("cat", "zebra", "Äffin 猫")
    assert split.labels.tolist() == ["cat"] * 3 + ["zebra"] * 2 + ["Äffin 猫"]
    assert list(split.names) == [
        "cat/4.png",
        "cat/5.png",
        "cat/6.png",
        "zebra/1.png",
        "zebra/2.png",
        "Äffin 猫/3.png",
    ]
    assert [split.inputs[i][0, 0, 0] for i in range(6)] == [4, 5, 6, 1, 2, 3]
    assert split.inputs[0].shape == (5, 6, 3)
    assert load(str(photos)).fingerprint == split.fingerprint


def test_files_of_the_system_and_hidden_ones_are_left_out(photos):
    before = list(load(photos).names)
    for name in (
        ".DS_Store",
        "Thumbs.db",
        "desktop.ini",
        "._4.png",
        "notes.txt",
        "cat/.hidden.png",
        "cat/Thumbs.db",
    ):
        (photos / name).write_bytes(b"x")
    (photos / ".cache").mkdir()
    (photos / "__MACOSX").mkdir()
    assert list(load(photos).names) == before


def test_upper_case_suffixes_links_and_nested_folders_are_read(photos, tmp_path):
    image(photos / "cat" / "2019" / "deep.PNG", 9)
    image(tmp_path / "elsewhere" / "real.png", 10)
    (photos / "cat" / "link.JPG").symlink_to(tmp_path / "elsewhere" / "real.png")
    (photos / "bear").symlink_to(tmp_path / "elsewhere")
    (photos / "cat" / "loop").symlink_to(photos)
    split = load(photos)
    assert [n for n in split.names if n.startswith("cat")] == [
        "cat/2019/deep.PNG",
        "cat/4.png",
        "cat/5.png",
        "cat/6.png",
        "cat/link.JPG",
    ]
    assert split.inputs[list(split.names).index("cat/link.JPG")][0, 0, 0] == 10
    assert split.classes[0] == "bear"


@pytest.mark.parametrize("test_name", ["test", "val", "validation"])
def test_a_folder_may_be_split(photos, tmp_path, test_name):
    root = tmp_path / "data"
    shutil.copytree(photos, root / "train")
    image(root / test_name / "cat" / "7.png", 7)
    assert len(load(root)) == 6
    test = load(root, "test")
    assert list(test.names) == ["cat/7.png"]
    assert test.inputs[0][0, 0, 0] == 7


def test_a_class_may_be_called_train(photos):
    image(photos / "train" / "steam.png")
    assert "train" in load(photos).classes


def test_without_a_test_split_there_is_none(photos, tmp_path):
    shutil.copytree(photos, tmp_path / "half" / "train")
    assert len(load(tmp_path / "half")) == 6
    for root in (photos, tmp_path / "half"):
        with pytest.raises(
            FileError, match=r"has no test split; put its classes below .*test\.$"
        ):
            load(root, "test")


def test_imagenet_uses_its_validation_set_as_test_set(photos, own_home):
    for part in ("train", "val"):
        shutil.copytree(photos, own_home / "data" / "imagenet" / part)
    image(own_home / "data" / "imagenet" / "val" / "cat" / "more.png")
    assert len(load("imagenet")) == 6
    assert len(load("imagenet", "test")) == 7


def test_ambiguous_folders_are_refused(photos, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileError, match="has no sub-folders"):
        load(tmp_path / "empty")
    (photos / "dog").mkdir()
    for folder in (photos / "dog", tmp_path / "notes"):
        (folder / "empty").mkdir(parents=True, exist_ok=True)
    with pytest.raises(
        FileError,
        match=r"notes has no images, sounds or texts; images end in .*\.jpg",
    ):
        load(tmp_path / "notes")


def test_stray_files_and_empty_folders_are_listed_and_left_out(photos):
    names = list(load(photos).names)
    for folder in ("dog", "owl"):
        (photos / folder).mkdir()
    (photos / "owl" / "1.qqq").write_bytes(b"x")
    image(photos / "loose.png")
    image(photos / "stray.png")
    (photos / "notes.txt").write_text("not an image")
    split = load(photos)
    assert list(split.names) == names
    assert split.omissions == (
        "Ignored 2 images outside any class folder: loose.png, stray.png.",
        "Ignored 2 folders without images: dog, owl.",
    )


def test_a_zip_of_folders_is_read_like_the_folder(photos, tmp_path):
    for name in (".hidden/1.png", "__MACOSX/cat/4.png"):
        image(photos / name)
    whole = shutil.make_archive(str(tmp_path / "flat"), "zip", photos)
    nested = shutil.make_archive(str(tmp_path / "nested"), "zip", tmp_path, "photos")
    shutil.copytree(photos, tmp_path / "data" / "train")
    image(tmp_path / "data" / "val" / "cat" / "7.png", 7)
    parted = shutil.make_archive(str(tmp_path / "parted"), "zip", tmp_path, "data")
    for path in (whole, nested, parted):
        split = load(path)
        assert (list(split.names), split.labels.tolist()) == (
            list(load(photos).names),
            load(photos).labels.tolist(),
        )
        np.testing.assert_array_equal(split.inputs[2], load(photos).inputs[2])
        assert split.fingerprint == load(photos).fingerprint
        again = pickle.loads(pickle.dumps(split.inputs[1:3]))
        np.testing.assert_array_equal(again[1], split.inputs[2])
    assert load(parted).parts == ("train", "test")
    assert load(parted, "test").inputs[0][0, 0, 0] == 7
    assert len(load(whole, labelled=False)) == 6


def test_a_zip_has_the_order_of_the_folder(tmp_path):
    """By level: the characters of `cat big` and `cat-2` after `cat` come before a slash."""
    for i, name in enumerate(
        [
            "cat/1.png",
            "cat big/1.png",
            "cat-2/1.png",
            "dog/1.png",
            "dog/0/2.png",
            "dog/0.5/2.png",
        ]
    ):
        image(tmp_path / "photos" / name, i)
    folder, zipped = (
        load(tmp_path / "photos"),
        load(shutil.make_archive(str(tmp_path / "a"), "zip", tmp_path / "photos")),
    )
    assert zipped.names == folder.names
    assert zipped.classes == folder.classes == ("cat", "cat big", "cat-2", "dog")
    assert zipped.fingerprint == folder.fingerprint


def test_a_damaged_or_dangerous_zip_is_refused(photos, tmp_path):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("cat/../../evil.png", b"x")
    with pytest.raises(FileError, match="not a relative path inside the archive"):
        load(path)
    path.write_bytes(b"PK nonsense")
    with pytest.raises(FileError, match="not a zip file"):
        load(path)
    whole = shutil.make_archive(str(tmp_path / "whole"), "zip", photos)
    raw = bytearray(Path(whole).read_bytes())
    raw[raw.index(b"zebra/1.png") + 40] ^= 255
    Path(whole).write_bytes(raw)
    split = load(whole)
    with pytest.raises(UnreadableInput, match=r"zebra/1\.png: .*"):
        [split.inputs[i] for i in range(len(split))]


@pytest.mark.parametrize(
    "method",
    [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA],
)
def test_a_damaged_file_in_a_zip_is_one_unreadable_input(tmp_path, method):
    """Every decompressor raises exceptions of its own."""
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("cat/1.txt", "hello world " * 50)
        archive.writestr("dog/1.txt", "a dog")
        first = archive.getinfo("cat/1.txt")
    raw = bytearray(path.read_bytes())
    end = (
        len(b"PK\3\4") + 26 + len(first.filename) + first.compress_size
    )  # of the content of the first file
    for i in range(end - min(first.compress_size, 20), end):
        raw[i] ^= 255
    path.write_bytes(raw)
    split = load(path)
    with pytest.raises(UnreadableInput, match=r"cat/1\.txt: .*"):
        split.inputs[0]
    assert split.inputs[1] == "a dog"


def test_a_folder_of_text_files_is_texts(tmp_path):
    for label, texts in {
        "complaint": ["it broke", "too late"],
        "praise": ["great. 5.0 of 5"],
    }.items():
        (tmp_path / "mails" / label).mkdir(parents=True)
        for i, text in enumerate(texts):
            (tmp_path / "mails" / label / f"{i}.txt").write_text(text + "\n", "utf-8")
    split = load(tmp_path / "mails")
    assert (split.modality, split.found) == ("text", "3 texts of 2 classes (mails)")
    assert [split.inputs[i] for i in range(3)] == [
        "it broke",
        "too late",
        "great. 5.0 of 5",
    ]
    image(tmp_path / "mails" / "praise" / "logo.png")
    assert (load(tmp_path / "mails").modality, load(tmp_path / "mails").ignored) == (
        "image",
        {".txt": 3},
    )


def test_an_unreadable_image_is_named_when_it_is_asked_for(photos):
    (photos / "cat" / "5.png").write_bytes(b"")
    (photos / "zebra" / "1.png").unlink()
    (photos / "zebra" / "1.png").symlink_to("nowhere.png")
    split = load(photos)
    assert len(split) == 6
    for name, reason in {"cat/5.png": "empty", "zebra/1.png": "No such file"}.items():
        with pytest.raises(
            UnreadableInput, match=f"Cannot read {name}: .*{reason}"
        ) as caught:
            split.inputs[list(split.names).index(name)]
        assert caught.value.name == name
    assert len(split.fingerprint) == 64


def test_the_fingerprint_is_of_the_content(photos, tmp_path):
    first = load(photos).fingerprint
    copy = tmp_path / "copy"
    shutil.copytree(photos, copy)
    os.utime(copy / "cat" / "4.png", (1, 1))
    (copy / "cat" / "4.png").rename(copy / "cat" / "3.png")
    assert load(copy).fingerprint == first
    image(copy / "cat" / "3.png", 200)
    assert load(copy).fingerprint != first
    shutil.rmtree(copy)
    shutil.copytree(photos, copy)
    (copy / "cat").rename(copy / "dog")
    assert load(copy).fingerprint != first


def test_an_unchanged_folder_is_not_read_again(photos, monkeypatch, own_home):
    monkeypatch.setattr(files, "CLOCK_STEP", -1e9)
    first = load(photos).fingerprint
    assert len(list((own_home / "fingerprints").iterdir())) == 1
    with monkeypatch.context() as patch:
        patch.setattr(files, "read_file", None)
        assert load(photos).fingerprint == first
    path = photos / "cat" / "4.png"
    times = path.stat()
    content = bytearray(path.read_bytes())
    content[-20] ^= 1
    path.write_bytes(content)
    os.utime(
        path, ns=(times.st_atime_ns, times.st_mtime_ns)
    )  # same name, size and modification time
    changed = load(photos).fingerprint
    assert changed != first
    for note in (own_home / "fingerprints").iterdir():
        note.write_text("damaged")
    assert load(photos).fingerprint == changed


def test_fingerprints_of_recently_changed_files_are_not_cached(photos, own_home):
    assert len(load(photos).fingerprint) == 64
    assert not (own_home / "fingerprints").exists()


def test_a_home_that_cannot_be_written_costs_only_time(photos, monkeypatch, own_home):
    own_home.write_text("not a folder")
    monkeypatch.setattr(files, "CLOCK_STEP", -1e9)
    assert load(photos).fingerprint == load(photos).fingerprint


def test_memory_does_not_grow_with_the_images_read(tmp_path):
    root = tmp_path / "many"
    for i in range(120):
        image(root / "a" / f"{i}.png", i, size=(100, 100))
    split = load(root)

    def peak(n):
        tracemalloc.start()
        for i in range(n):
            assert split.inputs[i].shape == (100, 100, 3)
        size = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return size

    peak(1)
    few, many = peak(10), peak(120)
    assert many < few + 30_000  # the size of one image


def test_labels_of_a_folder_are_strings(photos):
    assert load(photos).labels.dtype.kind == "U"
    assert isinstance(np.unique(load(photos).labels).tolist()[0], str)


@pytest.mark.skipif(os.name != "posix", reason="links need no rights on POSIX")
def test_a_circular_link_is_one_unreadable_image(photos):
    (photos / "loop").symlink_to("loop")
    (photos / "cat" / "loop.png").symlink_to("loop.png")
    split = load(photos)
    assert list(split.names)[3] == "cat/loop.png"
    assert len(split.fingerprint) == 64
    with pytest.raises(UnreadableInput, match=r"cat/loop.png: .*symbolic links"):
        split.inputs[3]


def test_skipped_files_are_counted_by_suffix(photos):
    for name in (
        "cat/a.QQQ",
        "cat/b.qqq",
        "zebra/notes.txt",
        "list.txt",
        "cat/README",
        "cat/.hidden",
    ):
        (photos / name).write_bytes(b"x")
    split = load(photos)
    assert split.ignored == {".qqq": 2, ".txt": 2, "": 1}
    assert (
        split.found
        == "6 images of 3 classes (photos); ignored: 1 without suffix, 2 .qqq, 2 .txt"
    )
    (photos / "other" / "dog").mkdir(parents=True)
    (photos / "other" / "dog" / "1.qqq").write_bytes(b"x")
    with pytest.raises(
        FileError,
        match=r"other has no images, sounds or texts; .*; it has 1 \.qqq\.$",
    ):
        load(photos / "other")


def test_the_parts_are_named(photos, tmp_path):
    assert load(photos).parts == ("train",)
    shutil.copytree(photos, tmp_path / "data" / "train")
    image(tmp_path / "data" / "val" / "cat" / "7.png", 7)
    assert (
        load(tmp_path / "data").parts
        == load(tmp_path / "data", "test").parts
        == ("train", "test")
    )
    assert load(tmp_path / "data", "test").found == "1 image of 1 class (data)"


def test_without_labels_all_files_below_the_folder_are_read(photos):
    names = list(load(photos).names)
    image(photos / "loose.png", 9)
    split = load(photos, labelled=False)
    assert list(split.names) == [*names[:3], "loose.png", *names[3:]]
    assert (len(split.labels), split.classes, split.found) == (
        0,
        (),
        "7 images (photos)",
    )


def test_files_may_be_given_one_by_one(photos, tmp_path):
    (photos / "cat" / "bad.png").write_bytes(b"")
    (photos / "cat" / "notes.txt").write_bytes(b"x")
    given = [str(photos / "zebra" / "2.png"), photos / "cat"]
    split = load_files(given)
    assert list(split.names) == [
        given[0],
        *(str(photos / "cat" / n) for n in ("4.png", "5.png", "6.png", "bad.png")),
    ]
    assert (split.inputs[0][0, 0, 0], split.ignored, split.modality) == (
        2,
        {".txt": 1},
        "image",
    )
    with pytest.raises(UnreadableInput, match=r"bad\.png: the file is empty"):
        split.inputs[4]
    with pytest.raises(FileError, match="There is no file or folder nowhere"):
        load_files(["nowhere"])
    with pytest.raises(FileError, match="No files are given"):
        load_files([])


def test_a_folder_is_read_as_the_kind_that_is_given(photos):
    (photos / "cat" / "notes.txt").write_text("a cat")
    texts = load_files([photos], "text")
    assert (list(texts.names), texts.inputs[0]) == (
        [str(photos / "cat" / "notes.txt")],
        "a cat",
    )
    assert (texts.ignored, len(load_files([photos], "image"))) == ({".png": 6}, 6)
    with pytest.raises(
        FileError,
        match=r"photos has no sounds, which end in \.wav; it has 6 \.png, 1 \.txt\.$",
    ):
        load_files([photos], "sound")


@pytest.mark.skipif(
    importlib.util.find_spec("pillow_heif") is None,
    reason="pillow-heif is not installed",
)
def test_heic_is_read_where_its_extra_is_installed(photos):
    import pillow_heif

    pillow_heif.register_heif_opener()
    Image.new("RGB", (64, 48), (200, 30, 20)).save(photos / "cat" / "a.HEIC", "HEIF")
    split = load(photos)
    assert split.inputs[list(split.names).index("cat/a.HEIC")].shape == (48, 64, 3)
    assert split.ignored == {}
