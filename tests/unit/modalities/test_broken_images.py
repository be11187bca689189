"""Truncated, flipped, spliced or mislabelled image files are read or refused in one sentence."""

import io
import struct
import time

import numpy as np
import pytest
from PIL import Image

from imprint.datasets import UnreadableInput, load_files
from imprint.modalities.image import MAX_PIXELS, formats

EACH = 40  # per format, more than 200 in total
LONGEST = 5.0
PIXELS = np.random.default_rng(0).integers(0, 256, (33, 47, 3), dtype=np.uint8)


def whole(kind: str) -> bytes:
    out = io.BytesIO()
    Image.fromarray(PIXELS).save(out, kind)
    return out.getvalue()


def broken(raw: bytes, other: bytes, draw: np.random.Generator) -> bytes:
    """An image file with one random damage or one false header value."""
    data, kind, at = bytearray(raw), draw.integers(7), int(draw.integers(len(raw)))
    if kind == 0:
        return raw[:at]
    if kind == 1:
        for place in draw.integers(len(data), size=draw.integers(1, 20)):
            data[place] ^= 1 << draw.integers(8)
        return bytes(data)
    if kind == 2:
        return raw[:at] + other[at:]
    if kind == 3:
        return raw[:at] + draw.bytes(64) + raw[at:]
    if kind == 4:
        size = struct.pack(">I", int(draw.choice([0, 2**31 - 1, 2**32 - 1, 60_000])))
        place = int(draw.integers(min(64, len(data) - 4)))
        return bytes(data[:place] + size + data[place + 4 :])
    if kind == 5:
        return raw[:12] + draw.bytes(200)
    return raw[:at] + raw[at + int(draw.integers(1, 40)) :]


@pytest.mark.parametrize("kind", sorted(formats()))
def test_broken_images_are_read_or_refused_in_a_sentence(kind, tmp_path):
    raw, draw = whole(kind), np.random.default_rng(sum(map(ord, kind)))
    kinds, refused = sorted(formats()), 0
    for i in range(EACH):
        content = broken(raw, whole(kinds[i % len(kinds)]), draw)
        path, start = tmp_path / f"{i}.png", time.monotonic()
        path.write_bytes(content)
        try:
            image = load_files([path]).inputs[0]
            assert image.dtype == np.uint8
            assert image.ndim == 3
            assert image.shape[2] == 3
            assert image.size <= 3 * MAX_PIXELS
        except UnreadableInput as e:
            refused += "\n" not in str(e) and str(e).startswith(f"Cannot read {path}: ")
        assert time.monotonic() - start < LONGEST, (kind, i)
    assert refused >= EACH // 4, "too few files were damaged"


def test_there_are_two_hundred_damaged_images():
    assert EACH * len(formats()) >= 200
