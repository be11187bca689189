"""Files are written atomically, with the permissions of the umask of the process, which is never changed."""

import os
import signal
import stat
import subprocess
import sys
from contextlib import suppress

import pytest

from imprint.core.errors import FileError
from imprint.core.files import container
from imprint.core.files.atomic import atomic_write
from imprint.core.files.partial import PARTIAL_SUFFIX, remove_partials

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no umask")


@pytest.fixture(params=[0o022, 0o077, 0o002])
def umask(request, monkeypatch):
    before = os.umask(request.param)

    def touched(_):
        raise AssertionError(
            "the umask belongs to the whole process: no thread may set it"
        )

    with monkeypatch.context() as m:
        m.setattr(os, "umask", touched)
        yield request.param
    os.umask(before)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_file_has_the_permissions_of_the_umask(umask, tmp_path):
    with atomic_write(tmp_path / "a") as f:
        f.write(b"content")
    assert (tmp_path / "a").read_bytes() == b"content"
    assert mode(tmp_path / "a") == 0o666 & ~umask


def test_a_replaced_file_keeps_its_permissions_also_while_it_is_written(
    umask, tmp_path
):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    path.chmod(0o604)
    with atomic_write(path) as f:
        (temporary,) = tmp_path.glob(".a.*")
        assert mode(temporary) == 0o604
        f.write(b"new")
    assert (path.read_bytes(), mode(path)) == (b"new", 0o604)
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_a_name_that_is_taken_is_not_overwritten(tmp_path, monkeypatch):
    monkeypatch.setattr("imprint.core.files.partial.token_hex", lambda _: "taken")
    with atomic_write(tmp_path / "a") as first:
        with (
            pytest.raises(FileError, match=r"^Cannot write .*a: File exists\.$"),
            atomic_write(tmp_path / "a"),
        ):
            pass
        first.write(b"first")
    assert (tmp_path / "a").read_bytes() == b"first"
    assert os.listdir(tmp_path) == ["a"]


def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path):
    path = tmp_path / "a.bin"
    path.write_bytes(b"old")
    with suppress(RuntimeError), atomic_write(path) as f:
        f.write(b"new")
        raise RuntimeError
    assert (os.listdir(tmp_path), path.read_bytes()) == (["a.bin"], b"old")


def test_the_file_reaches_the_disk_before_its_name_does(tmp_path, monkeypatch):
    calls, fsync, replace = [], os.fsync, os.replace
    monkeypatch.setattr(
        os,
        "fsync",
        lambda h: (
            calls.append("folder" if stat.S_ISDIR(os.fstat(h).st_mode) else "file")
            or fsync(h)
        ),
    )
    monkeypatch.setattr(
        os, "replace", lambda *paths: calls.append("rename") or replace(*paths)
    )
    with atomic_write(tmp_path / "a.bin") as f:
        f.write(b"new")
    assert calls == ["file", "rename", "folder"]


def test_a_name_that_the_system_refuses_is_reported(tmp_path):
    path = tmp_path / ("a" * 300)
    with (
        pytest.raises(FileError, match=r"^Cannot write .*: File name too long\.$"),
        atomic_write(path),
    ):
        pass
    with pytest.raises(FileError, match=r"^Cannot read .*: File name too long\.$"):
        container.read(path)


def test_a_killed_write_is_removed_by_the_next_process(tmp_path):
    program = (
        "import os, signal, sys; from imprint.core.files.atomic import atomic_write\n"
        "with atomic_write(sys.argv[1]) as f:\n"
        "    f.write(b'half'); f.flush(); os.kill(os.getpid(), signal.SIGKILL)"
    )
    words = [sys.executable, "-c", program, str(tmp_path / "a")]
    assert subprocess.run(words, env=os.environ).returncode == -signal.SIGKILL
    assert len(os.listdir(tmp_path)) == 1
    with atomic_write(tmp_path / "b") as f:
        f.write(b"whole")
    assert os.listdir(tmp_path) == ["b"]


def test_the_temporary_file_of_a_living_process_stays(tmp_path):
    with atomic_write(tmp_path / "a") as f:
        remove_partials(tmp_path)
        f.write(b"content")
    assert (tmp_path / "a").read_bytes() == b"content"


def test_links_and_folders_with_the_suffix_stay(tmp_path):
    (tmp_path / "mine").write_bytes(b"mine")
    os.symlink(tmp_path / "mine", tmp_path / f".a{PARTIAL_SUFFIX}")
    (tmp_path / f".b{PARTIAL_SUFFIX}").mkdir()
    os.mkfifo(tmp_path / f".c{PARTIAL_SUFFIX}")
    remove_partials(tmp_path)
    assert len(os.listdir(tmp_path)) == 4
