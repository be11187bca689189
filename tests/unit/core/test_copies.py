"""Copies of files in folders are complete, never replace another file and follow no link."""

import errno
import os
import shutil
import string
import sys
import threading
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from imprint.core.errors import FileError
from imprint.core.files import copies
from imprint.core.files.copies import MAX_NAME_BYTES, copy_files, folder_name

needs_links = pytest.mark.skipif(
    sys.platform == "win32", reason="links need a privilege"
)


@pytest.fixture
def files(tmp_path):
    """Two different files with the same name."""
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "1.png").write_bytes(folder.encode())
    return [str(tmp_path / folder / "1.png") for folder in ("a", "b")]


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_another_file_of_the_same_name_gets_a_number(files, tmp_path):
    out = tmp_path / "out"
    assert copy_files(out, [(name, ["cat"]) for name in files]) == 2
    assert contents(out / "cat") == {"1.png": b"a", "1-1.png": b"b"}
    assert copy_files(out, [(name, ["cat"]) for name in files]) == 0, "both exist"
    assert contents(out / "cat") == {"1.png": b"a", "1-1.png": b"b"}


@needs_links
def test_links_point_to_the_files_and_a_broken_one_stays(files, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    os.symlink(tmp_path / "gone", out / "1.png")
    assert copy_files(out, [(files[0], ())], link=True) == 1
    assert os.path.realpath(out / "1-1.png") == os.path.realpath(files[0])
    assert os.path.islink(out / "1.png")


@needs_links
@pytest.mark.parametrize("name", [".1.png.imprint-partial", "1.png"])
@pytest.mark.parametrize("exists", [True, False])
def test_no_prepared_link_is_followed(files, tmp_path, name, exists):
    outside = tmp_path / "outside"
    if exists:
        outside.write_bytes(b"mine")
    (tmp_path / "out").mkdir()
    os.symlink(outside, tmp_path / "out" / name)
    assert copy_files(tmp_path / "out", [(files[0], ())]) == 1
    assert not exists or outside.read_bytes() == b"mine"
    assert outside.exists() == exists
    copied = [p for p in (tmp_path / "out").iterdir() if not p.is_symlink()]
    assert [p.read_bytes() for p in copied] == [b"a"]


@needs_links
def test_a_linked_class_folder_is_refused(files, tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "out").mkdir()
    os.symlink(tmp_path / "outside", tmp_path / "out" / "cat")
    for path in (["cat"], ["cat", "tom"]):
        with pytest.raises(FileError, match=r"^Cannot write .*cat: it is a link; "):
            copy_files(tmp_path / "out", [(files[0], path)])
    assert not list((tmp_path / "outside").iterdir())


@needs_links
def test_the_folder_that_the_user_names_may_be_a_link(files, tmp_path):
    (tmp_path / "disk").mkdir()
    os.symlink(tmp_path / "disk", tmp_path / "out")
    assert copy_files(tmp_path / "out", [(files[0], ["cat"])]) == 1
    assert contents(tmp_path / "disk" / "cat") == {"1.png": b"a"}


def test_a_folder_that_cannot_be_made_is_one_sentence(files, tmp_path):
    (tmp_path / "out").write_text("a file")
    with pytest.raises(FileError, match=r"^Cannot write .*out.*: .*\.$"):
        copy_files(tmp_path / "out", [(files[0], ["animal", "cat"])])


def test_two_copiers_of_one_folder_keep_every_file(tmp_path):
    for i in range(4):
        (tmp_path / f"in{i}").mkdir()
        (tmp_path / f"in{i}" / "1.bin").write_bytes(bytes([i]) * 200_000)
    sources = [(str(tmp_path / f"in{i}" / "1.bin"), ["cat"]) for i in range(4)]
    counts = []

    def work(order):
        counts.append(copy_files(tmp_path / "out", order))

    threads = [
        threading.Thread(target=work, args=(sources[i:] + sources[:i],))
        for i in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    copied = contents(tmp_path / "out" / "cat")
    assert sum(counts) == len(copied) >= 4
    assert {raw[:1] * 200_000 for raw in copied.values()} == set(copied.values())
    assert {raw[0] for raw in copied.values()} == {0, 1, 2, 3}


def test_a_full_disk_leaves_no_part_of_a_file(files, tmp_path, monkeypatch):
    def full(content, out):
        out.write(content.read()[:1])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(shutil, "copyfileobj", full)
    with pytest.raises(FileError, match=r"^Cannot write .*: No space left on device"):
        copy_files(tmp_path / "out", [(files[0], ["cat"])])
    assert not contents(tmp_path / "out" / "cat")


def test_without_hard_links_no_file_is_overwritten(files, tmp_path, monkeypatch):
    def denied(*paths):
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", denied)
    assert copy_files(tmp_path / "out", [(name, ["cat"]) for name in files]) == 2
    assert contents(tmp_path / "out" / "cat") == {"1.png": b"a", "1-1.png": b"b"}


def test_classes_that_the_file_system_merges_are_refused(files, tmp_path, monkeypatch):
    # a link stands for a file system that ignores upper and lower case
    make = copies._make_folder
    monkeypatch.setattr(
        copies, "_make_folder", lambda folder: folder.exists() or make(folder)
    )
    (tmp_path / "out" / "cat").mkdir(parents=True)
    if not (tmp_path / "out" / "CAT").exists():
        os.symlink(tmp_path / "out" / "cat", tmp_path / "out" / "CAT")
    names = [["cat"], ["CAT"]]
    with pytest.raises(FileError, match="does not distinguish it from"):
        copy_files(tmp_path / "out", list(zip(files, names)))


AWKWARD = st.text(
    st.sampled_from(list('ab%23AFf:?*"<>|/\\ .\0\n\u00e9\u2028\ud800COoNn1')),
    max_size=8,
)
LABELS = AWKWARD | st.text(max_size=6) | st.text("xy", min_size=195, max_size=210)


@given(st.lists(LABELS, min_size=2, max_size=30, unique=True))
def test_different_labels_have_different_names(labels):
    names = [folder_name(label) for label in labels]
    assert len(set(names)) == len(labels)


@given(LABELS)
def test_every_name_is_one_ordinary_folder(label):
    name = folder_name(label)
    assert 0 < len(os.fsencode(name)) <= MAX_NAME_BYTES
    assert not set(name) & set('/\\:*?"<>|')
    assert all(unicodedata.category(c) not in ("Cc", "Cs") for c in name)
    assert name.strip(" ") == name
    assert not name.startswith(".")
    assert not name.endswith(".")


def test_ordinary_labels_are_their_own_names():
    words = ["cat", "Hot dog", "50 %", "caf\u00e9", "\u732b", "v1.0", "a-b_c", "con1"]
    assert [folder_name(word) for word in words] == words


def test_names_of_devices_are_escaped():
    for word in (
        "CON",
        "con",
        "nul.txt",
        "Aux",
        "COM1",
        "lpt9.x",
        "CONIN$",
        "com\u00b2",
    ):
        name = folder_name(word)
        assert name[0] == "%"
        assert name[3:] == word[1:]


def test_long_labels_are_told_apart_by_a_digest():
    beginning = "\u732b" * 200
    names = {folder_name(beginning + letter) for letter in string.ascii_letters}
    assert len(names) == len(string.ascii_letters)
    assert all(name.startswith("\u732b" * 20) for name in names)
