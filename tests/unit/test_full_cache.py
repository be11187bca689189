"""A full disk under the cache of unpacked packs, simulated by a limit on file sizes."""

import signal
import sys

import numpy as np
import pytest

from imprint.core.errors import FileError
from imprint.embeddings import write_pack
from imprint.study import Packs

resource = pytest.importorskip(
    "resource", reason="only POSIX systems limit the size of files"
)
X, Y = (
    np.random.default_rng(0).normal(size=(36, 5)).astype(np.float32),
    np.repeat(np.arange(3), 12),
)


@pytest.fixture
def room():
    """A function that limits the size of files of this process."""
    before, handler = (
        resource.getrlimit(resource.RLIMIT_FSIZE),
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN),
    )
    yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.skipif(sys.platform == "darwin", reason="macOS ends the process instead")
@pytest.mark.parametrize("size", [0, 100, 200, 500, 800])
def test_a_full_disk_under_the_cache_is_one_sentence(tmp_path, room, size):
    """At any limit, no partial file is used, and the next call with enough space succeeds."""
    write_pack(tmp_path / "a-one.npz", X, Y, X[:6], Y[:6])
    packs = Packs(str(tmp_path), str(tmp_path / "cache"))
    room(size)
    try:
        with pytest.raises(
            FileError, match=r"^Cannot write .*cache: File too large\.$"
        ):
            packs.open("a", "one")
    finally:
        room(10**9)
    assert not list((tmp_path / "cache").iterdir())
    assert np.array_equal(packs.open("a", "one").X, X)
