"""Sounds in WAV files become float32 samples."""

import struct
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from imprint.core.types import Array
from imprint.datasets.split import UnreadableInput

SUFFIXES = frozenset({".wav"})
WHOLE, FLOATING, EXTENSIBLE = 1, 3, 0xFFFE  # how samples are written
KINDS = {(WHOLE, 8): "u1", (WHOLE, 16): "<i2", (WHOLE, 32): "<i4", (FLOATING, 32): "<f4", (FLOATING, 64): "<f8"}


class Sound(NamedTuple):
    """One channel of sound; channels of the file are averaged."""

    samples: Array  # (n,) float32, from -1 to 1
    rate: int  # samples per second


def read_sound(raw: bytes, name: str = "the given bytes") -> Sound:
    """The sound in the bytes of a WAV file: 8, 16, 24 or 32 bits, or floating point."""
    try:
        return _read(raw)
    except (ValueError, struct.error) as e:
        reason = str(e) if isinstance(e, _RefusedError) else "the file is damaged"
        raise UnreadableInput(name, reason) from None


class _RefusedError(ValueError):
    """The file is whole, but we do not read it."""


def _read(raw: bytes) -> Sound:
    if raw[:4] != b"RIFF" or raw[8:12] != b"WAVE":
        raise _RefusedError("the file is empty" if not raw else "not a WAV file")
    parts = dict(_chunks(raw))
    if b"fmt " not in parts or not parts.get(b"data"):
        raise _RefusedError("the file has no samples")
    kind, channels, rate, _, frame, bits = struct.unpack_from("<HHIIHH", parts[b"fmt "])
    if kind == EXTENSIBLE:
        (kind,) = struct.unpack_from("<H", parts[b"fmt "], 24)
    if channels < 1 or rate < 1 or frame != channels * bits // 8:
        raise _RefusedError("the file is damaged")
    data = parts[b"data"]
    values = _samples(data[: len(data) // frame * frame], kind, bits)
    mono: Array = values.reshape(-1, channels).mean(axis=1, dtype=np.float32)
    if not len(mono) or not np.isfinite(mono).all():
        raise _RefusedError("the file has no samples" if not len(mono) else "its samples are not finite")
    return Sound(mono, rate)


def _chunks(raw: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = 12
    while at + 8 <= len(raw):
        size = int.from_bytes(raw[at + 4 : at + 8], "little")
        yield raw[at : at + 4], raw[at + 8 : at + 8 + size]
        at += 8 + size + size % 2


def _samples(data: bytes, kind: int, bits: int) -> Array:
    """Samples as float32 from -1 to 1."""
    if (kind, bits) == (WHOLE, 24):
        padded = np.zeros((len(data) // 3, 4), np.uint8)
        padded[:, 1:] = np.frombuffer(data, np.uint8).reshape(-1, 3)
        values = padded.view("<i4")[:, 0]
    elif (kind, bits) in KINDS:
        values = np.frombuffer(data, KINDS[kind, bits])
    else:
        raise _RefusedError(f"samples of {bits} bits in format {kind} are not read; save it as 16-bit PCM")
    if values.dtype.kind == "f":
        return values.astype(np.float32)
    if values.dtype == np.uint8:
        return (values.astype(np.float32) - 128) / 128
    return values.astype(np.float32) / np.float32(2 ** (8 * values.dtype.itemsize - 1))
