"""Sample data: written whole or not at all, small, and readable by `datasets.load`."""

import io
import zipfile

import pytest

from imprint import datasets
from imprint.core.errors import FileError, ParameterError
from imprint.datasets import samples


@pytest.mark.parametrize("name", samples.kinds())
def test_a_sample_can_be_loaded_and_is_small(name, tmp_path):
    kind = samples.kinds()[name]
    paths = samples.write_sample(name, tmp_path / name)
    assert sum(path.stat().st_size for path in paths) < 2_000_000
    train = datasets.load(tmp_path / name)
    test = datasets.load(tmp_path / name, "test")
    assert train.modality == test.modality == kind.modality
    assert set(train.classes) == set(test.classes)
    assert len(train.classes) > 1
    assert len(train) >= 10 * len(train.classes)


@pytest.mark.parametrize("name", samples.kinds())
def test_a_sample_is_the_same_every_time(name):
    assert samples.sample_files(name) == samples.sample_files(name)


def test_no_input_is_in_two_parts():
    contents = samples.sample_files("photos")
    assert len(set(contents.values())) == len(contents)
    tables = samples.sample_files("messages").values()
    texts = [line for table in tables for line in table.decode().splitlines()[1:]]
    assert len(set(texts)) == len(texts)


def test_a_folder_that_has_files_is_refused_and_an_empty_one_is_filled(tmp_path):
    (tmp_path / "empty").mkdir()
    assert samples.write_sample("messages", tmp_path / "empty")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    for target in ("full", "full/mine.txt"):
        with pytest.raises(FileError, match="not an empty folder"):
            samples.write_sample("messages", tmp_path / target)
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["mine.txt"]
    with pytest.raises(ParameterError, match=r"Unknown sample 'photo'.*photos"):
        samples.write_sample("photo", tmp_path / "none")


def test_a_failure_leaves_no_files(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(samples.Path, "write_bytes", fail)
    with pytest.raises(FileError, match="No space left"):
        samples.write_sample("messages", tmp_path / "new")
    assert list((tmp_path / "new").iterdir()) == []


def test_the_archive_holds_train_and_test():
    archive = zipfile.ZipFile(io.BytesIO(samples.sample_archive("image")))
    assert {name.split("/")[0] for name in archive.namelist()} == {"train", "test"}
    assert samples.sample_archive("embedding") is None


def test_the_command_names_every_kind():
    from imprint.cli.commands import sample

    assert all(name in sample.__doc__ for name in samples.kinds())
