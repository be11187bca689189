"""The journal: whole lines count, half a line never happened, and damage is noticed."""

import pytest

from imprint.core.errors import FileError
from imprint.serve.journal import Journal

ENTRIES = [{"do": "create", "label": f"class {i}"} for i in range(5)]


@pytest.fixture
def path(tmp_path):
    journal = Journal(tmp_path / "journal")
    journal.append(ENTRIES[:2])
    journal.append(ENTRIES[2:])
    journal.close()
    return tmp_path / "journal"


def read(path):
    journal = Journal(path)
    journal.close()
    return journal.entries


def test_a_line_cut_anywhere_never_happened_and_the_next_one_follows(path):
    raw = path.read_bytes()
    last = raw.rstrip(b"\n").rfind(b"\n") + 1
    for end in range(last, len(raw)):
        path.write_bytes(raw[:end])
        assert read(path) == ENTRIES[:4], end
        journal = Journal(path)
        journal.append([{"do": "undo"}])
        journal.close()
        assert read(path) == [*ENTRIES[:4], {"do": "undo"}]


def test_every_flipped_bit_is_noticed(path):
    raw = path.read_bytes()
    for place in range(len(raw)):
        for bit in (0, 3, 6):
            path.write_bytes(raw[:place] + bytes([raw[place] ^ (1 << bit)]) + raw[place + 1 :])
            with pytest.raises(FileError, match=r"damaged|format"):
                read(path)


def test_a_lost_a_repeated_and_a_swapped_line_are_noticed(path):
    lines = path.read_bytes().splitlines(keepends=True)
    for altered in (
        lines[:2] + lines[3:],
        [*lines[:3], lines[2], *lines[3:]],
        [*lines[:2], lines[3], lines[2], *lines[4:]],
    ):
        path.write_bytes(b"".join(altered))
        with pytest.raises(FileError, match=r"line \d is damaged"):
            read(path)


def test_what_cannot_be_written_does_not_count(path, monkeypatch):
    journal = Journal(path)

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("imprint.serve.journal.os.fsync", full)
    with pytest.raises(FileError, match="No space left"):
        journal.append([{"do": "undo"}])
    monkeypatch.undo()
    journal.append([{"do": "redo"}])
    journal.close()
    assert read(path) == [*ENTRIES, {"do": "redo"}]
