from pathlib import Path

import pytest

from imprint.core.files.atomic import home


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
