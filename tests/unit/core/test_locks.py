"""A lock admits one thread at a time, also if it removes its file."""

import threading
import time

import pytest

from imprint.core.errors import FileError
from imprint.core.files import atomic


@pytest.mark.parametrize("remove", [False, True])
def test_one_thread_at_a_time_holds_the_lock(tmp_path, monkeypatch, remove):
    monkeypatch.setattr(atomic, "LOCK_INTERVAL", 0.0002)
    path, inside, most = tmp_path / "a.lock", [], []

    def work() -> None:
        for _ in range(60):
            with atomic.exclusive(path, remove=remove):
                inside.append(1)
                most.append(len(inside))
                time.sleep(0.0005)
                inside.pop()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert (len(most), max(most)) == (240, 1)
    assert path.exists() is not remove


def test_the_lock_is_released_after_an_error(tmp_path):
    path = tmp_path / "a.lock"
    with pytest.raises(ZeroDivisionError), atomic.exclusive(path, remove=True):
        raise ZeroDivisionError
    assert not path.exists()
    with atomic.exclusive(path, remove=True):
        assert path.exists()


def test_a_path_that_cannot_be_locked_is_named(tmp_path):
    with (
        pytest.raises(FileError, match=r"Cannot lock .*missing"),
        atomic.exclusive(tmp_path / "missing" / "a.lock"),
    ):
        pass
