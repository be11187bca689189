"""A disk that is full where packs are unpacked."""

import errno
import os

import numpy as np
import pytest

from imprint.core.errors import FileError
from imprint.embeddings import write_pack
from imprint.study import Packs

X, Y = np.random.default_rng(0).normal(size=(36, 5)).astype(np.float32), np.repeat(np.arange(3), 12)


class Limited:
    """A file that takes no more than some bytes."""

    def __init__(self, file, write):
        self.file, self.write = file, write

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.file.close()


@pytest.mark.parametrize("room", [0, 200, 500, 1000, 1300])
def test_a_full_disk_under_the_cache_is_one_sentence(tmp_path, monkeypatch, room):
    """However much fits: nothing half written is taken for whole, and with room again it works."""
    write_pack(tmp_path / "a-one.npz", X, Y, X[:6], Y[:6])
    packs, left, honest = Packs(str(tmp_path), str(tmp_path / "cache")), [room], open

    def full(path, mode="r", *rest, **how):
        f = honest(path, mode, *rest, **how)
        if "w" in mode and str(tmp_path / "cache") in str(path):
            write = f.write

            def limited(data):
                left[0] -= memoryview(data).nbytes
                if left[0] < 0:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                return write(data)

            return Limited(f, limited)
        return f

    with monkeypatch.context() as patch:
        patch.setattr("builtins.open", full)
        with pytest.raises(FileError, match=r"^Cannot write .*cache: No space left on device\.$"):
            packs.open("a", "one")
    assert not list((tmp_path / "cache").iterdir())
    assert np.array_equal(packs.open("a", "one").X, X)
