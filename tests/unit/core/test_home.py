from pathlib import Path

import pytest

from imprint.core.errors import FileError
from imprint.core.files.atomic import expanded, home


@pytest.fixture(autouse=True)
def clean(monkeypatch, tmp_path):
    for key in ("IMPRINT_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(key, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


def test_the_users_cache_is_the_default(tmp_path):
    assert home() == tmp_path / ".cache" / "imprint"


def test_xdg_counts_if_absolute(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert home() == tmp_path / "cache" / "imprint"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert home() == tmp_path / ".cache" / "imprint"


def test_imprint_home_goes_first(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("IMPRINT_HOME", "~/mine")
    assert home() == tmp_path / "mine"
    monkeypatch.setenv("IMPRINT_HOME", "here")
    assert home() == Path.cwd() / "here"
    assert not home().exists()


def test_a_user_without_a_home_folder_is_asked_for_one(monkeypatch):
    def unknown(number):
        raise KeyError(number)

    monkeypatch.delenv("HOME")
    monkeypatch.setattr("pwd.getpwuid", unknown)
    with pytest.raises(FileError, match="no home folder for the cache: set IMPRINT_HO"):
        home()
    assert expanded("~/data") == Path("~/data")


def test_the_folder_of_an_unknown_user_stays_as_it_is(tmp_path):
    assert expanded("~nobody-of-that-name/data") == Path("~nobody-of-that-name/data")
    assert expanded("~/data") == tmp_path / "data"
