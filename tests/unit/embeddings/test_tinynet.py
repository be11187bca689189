"""TinyNet on real images: stored embeddings equal computed ones, also after an interruption."""

from types import SimpleNamespace

import numpy as np
import pytest

from imprint import backbones, datasets
from imprint.embeddings import extract

FIRST = 40


@pytest.fixture(scope="module")
def tinynet():
    return backbones.load("tinynet", threads=1)


@pytest.fixture(scope="module")
def digits():
    whole = datasets.load("digits", "test")
    return SimpleNamespace(
        inputs=[whole.inputs[i] for i in range(FIRST)],
        labels=whole.labels[:FIRST],
        names=whole.names[:FIRST],
        fingerprint=whole.fingerprint,
    )


def test_stored_rows_are_the_networks(tinynet, digits, tmp_path):
    e = extract(tinynet, digits, batch_size=16, folder=tmp_path)
    prepared = np.stack([tinynet.prepare(image) for image in digits.inputs])
    alone = np.concatenate(
        [tinynet.embed(prepared[i : i + 16]) for i in range(0, FIRST, 16)]
    )
    np.testing.assert_array_equal(e.X, alone)
    assert e.manifest["backbone"]["name"] == "tinynet"


def test_a_stopped_extraction_ends_in_the_same_bytes(
    tinynet, digits, tmp_path, contents
):
    class Stop(BaseException):
        pass

    def stop(progress):
        if progress.done == 24:
            raise Stop

    whole = extract(tinynet, digits, batch_size=8, folder=tmp_path / "whole")
    with pytest.raises(Stop):
        extract(
            tinynet, digits, batch_size=8, folder=tmp_path / "stopped", progress=stop
        )
    again = extract(tinynet, digits, batch_size=8, folder=tmp_path / "stopped")
    assert contents(again.folder) == contents(whole.folder)
