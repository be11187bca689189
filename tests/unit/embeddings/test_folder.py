"""Extraction from a real folder of images into the home folder of imprint."""

import numpy as np
import pytest
from PIL import Image

from imprint.core.files.atomic import home
from imprint.datasets import load
from imprint.embeddings import extract, list_embeddings, open_embeddings


@pytest.fixture
def photos(tmp_path, monkeypatch):
    monkeypatch.setenv("IMPRINT_HOME", str(tmp_path / "home"))
    rng = np.random.default_rng(0)
    for i in range(12):
        path = tmp_path / "photos" / "ab"[i % 2] / f"{i}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (4, 4, 3), np.uint8)).save(path)
    (tmp_path / "photos" / "a" / "4.png").write_bytes(b"not an image")
    return tmp_path / "photos"


def test_one_bad_image_is_named_and_the_rest_is_stored_at_home(photos, make_backbone):
    e = extract(make_backbone(pixels=48), load(str(photos), "train"))
    assert [s.name for s in e.skipped] == ["a/4.png"]
    assert "not an image" in e.skipped[0].reason
    assert len(e.X) == len(e.names) == 11
    assert e.y.tolist() == [name[0] for name in e.names]
    assert e.folder == home() / "embeddings" / e.key
    assert [s.key for s in list_embeddings()] == [e.key]
    np.testing.assert_array_equal(open_embeddings(e.key).X, e.X)


def test_a_moved_folder_needs_no_second_extraction(photos, make_backbone):
    first = extract(make_backbone(pixels=48), load(str(photos), "train"))
    backbone, moved = make_backbone(pixels=48), photos.rename(photos.parent / "moved")
    assert extract(backbone, load(str(moved), "train")).key == first.key
    assert backbone.batches == []
