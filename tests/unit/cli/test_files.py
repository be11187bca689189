"""Copies of files in folders are complete and never replace another file."""

import os
import sys

import pytest

from imprint.cli.files import copy_files, folder_of
from imprint.core.errors import FileError


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
    out = tmp_path / "out" / "cat"
    assert copy_files([(name, out) for name in files]) == 2
    assert contents(out) == {"1.png": b"a", "1-1.png": b"b"}
    assert copy_files([(name, out) for name in files]) == 0, "both files exist"
    assert contents(out) == {"1.png": b"a", "1-1.png": b"b"}


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege")
def test_links_point_to_the_files_and_a_broken_one_stays(files, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    os.symlink(tmp_path / "gone", out / "1.png")
    assert copy_files([(files[0], out)], link=True) == 1
    assert os.path.realpath(out / "1-1.png") == os.path.realpath(files[0])
    assert os.path.islink(out / "1.png")


def test_a_folder_that_cannot_be_made_is_one_sentence(files, tmp_path):
    (tmp_path / "out").write_text("a file")
    with pytest.raises(FileError, match=r"^Cannot write .*out.*: .*\.$"):
        copy_files([(files[0], folder_of(tmp_path / "out", "animal/cat"))])


def test_a_label_of_a_tree_is_a_folder_in_a_folder(tmp_path):
    assert folder_of(tmp_path, "animal/cat") == tmp_path / "animal" / "cat"
    assert folder_of(tmp_path, 7) == tmp_path / "7"
    assert tmp_path in folder_of(tmp_path, "../../etc").parents
