"""Reports, pages and exports never replace files that imprint did not write."""

import pytest

from imprint.core.errors import FileError
from imprint.core.files.atomic import OUTPUT_LIST, write_outputs


def test_outputs_are_written_again_but_never_over_other_files(tmp_path):
    write_outputs(tmp_path, {"a.txt": b"1", "figures/b.svg": b"2"})
    write_outputs(tmp_path, {"a.txt": b"3"})
    assert write_outputs(tmp_path, {"a.txt": b"4", "figures/b.svg": b"5"}) == [
        tmp_path / "a.txt",
        tmp_path / "figures/b.svg",
    ]
    (tmp_path / "notes.txt").write_bytes(b"mine")
    (tmp_path / "a.txt").write_bytes(b"edited")
    for name in ("notes.txt", "a.txt"):
        with pytest.raises(
            FileError,
            match=rf"Cannot write .*{name}: it exists, and imprint did not write it",
        ):
            write_outputs(tmp_path, {"c.txt": b"", name: b"new"})
    assert (tmp_path / "notes.txt").read_bytes() == b"mine"
    assert (tmp_path / "a.txt").read_bytes() == b"edited"
    assert not (tmp_path / "c.txt").exists()


def test_a_list_of_outputs_that_was_altered_is_refused(tmp_path):
    write_outputs(tmp_path, {"a.txt": b"1"})
    (tmp_path / OUTPUT_LIST).write_text('{"files": {}}')
    with pytest.raises(FileError):
        write_outputs(tmp_path, {"a.txt": b"2"})


def test_a_folder_with_the_name_of_a_file_is_reported(tmp_path):
    (tmp_path / "a.txt").mkdir()
    with pytest.raises(FileError, match=r"^Cannot replace .*a\.txt: Is a directory\.$"):
        write_outputs(tmp_path, {"a.txt": b"1"})
