import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from imprint.core.errors import ParameterError
from imprint.core.types import Array
from imprint.modalities._base import Modality, refused

PCM, FLOATING, EXTENSIBLE = 1, 3, 0xFFFE  # how samples are written
SAMPLE_TYPES = {(PCM, 8): "u1", (PCM, 16): "<i2", (PCM, 32): "<i4", (FLOATING, 32): "<f4", (FLOATING, 64): "<f8"}


@dataclass(frozen=True, kw_only=True)
class Sound(Modality):
    """Recordings: WAV files, or float32 samples in [-1, 1], at 16,000 a second or with their rate."""

    noun: ClassVar[str] = "sound"
    backbone: ClassVar[str | None] = "yamnet"

    def suffixes(self) -> frozenset[str]:
        return frozenset({".wav"})

    def read(self, raw: bytes) -> "Recording":
        return read_sound(raw)

    def convert(self, value: Any) -> Any:
        samples = value[0] if isinstance(value, tuple) and len(value) == 2 else value
        if not isinstance(samples, np.ndarray):
            raise ParameterError(f"A sound must be samples, or samples and their rate, not {type(value).__name__}.")
        return value

    def recognises(self, value: Any) -> bool:
        is_file = isinstance(value, bytes) and value.startswith(b"RIFF")
        return is_file or (isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], np.ndarray))

    def sample(self, size: int) -> list[Any]:
        """Sounds of 5 seconds."""
        return [np.random.default_rng(0).normal(0, 0.1, 80_000).astype(np.float32)] * size


class Recording(NamedTuple):
    """One channel of sound; channels of the file are averaged."""

    samples: Array  # (n,) float32, from -1 to 1
    rate: int  # samples per second


def read_sound(raw: bytes) -> Recording:
    """The sound in the bytes of a WAV file: 8, 16, 24 or 32 bits, or floating point."""
    try:
        return _read(raw)
    except struct.error:  # the header is too short
        raise refused("the file is damaged") from None


def _read(raw: bytes) -> Recording:
    if raw[:4] != b"RIFF" or raw[8:12] != b"WAVE":
        raise refused("the file is empty" if not raw else "not a WAV file")
    parts = dict(_chunks(raw))
    if b"fmt " not in parts or not parts.get(b"data"):
        raise refused("the file has no samples")
    kind, channels, rate, _, frame, bits = struct.unpack_from("<HHIIHH", parts[b"fmt "])
    if kind == EXTENSIBLE:
        (kind,) = struct.unpack_from("<H", parts[b"fmt "], 24)
    if channels < 1 or rate < 1 or frame < 1 or frame != channels * bits // 8:
        raise refused("the file is damaged")
    data = parts[b"data"]
    with np.errstate(over="ignore", invalid="ignore"):  # samples that are not finite are refused below
        values = _samples(data[: len(data) // frame * frame], kind, bits)
        mono: Array = values.reshape(-1, channels).mean(axis=1, dtype=np.float32)
    if not len(mono) or not np.isfinite(mono).all():
        raise refused("the file has no samples" if not len(mono) else "its samples are not finite")
    return Recording(mono, rate)


def _chunks(raw: bytes) -> Iterator[tuple[bytes, bytes]]:
    offset = 12
    while offset + 8 <= len(raw):
        size = int.from_bytes(raw[offset + 4 : offset + 8], "little")
        yield raw[offset : offset + 4], raw[offset + 8 : offset + 8 + size]
        offset += 8 + size + size % 2


def _samples(data: bytes, kind: int, bits: int) -> Array:
    """Samples as float32 from -1 to 1."""
    if (kind, bits) == (PCM, 24):
        padded = np.zeros((len(data) // 3, 4), np.uint8)
        padded[:, 1:] = np.frombuffer(data, np.uint8).reshape(-1, 3)
        values = padded.view("<i4")[:, 0]
    elif (kind, bits) in SAMPLE_TYPES:
        values = np.frombuffer(data, SAMPLE_TYPES[kind, bits])
    else:
        raise refused(f"samples of {bits} bits in format {kind} are not read; save it as 16-bit PCM")
    if values.dtype.kind == "f":
        return values.astype(np.float32)
    if values.dtype == np.uint8:
        return (values.astype(np.float32) - 128) / 128
    return values.astype(np.float32) / np.float32(2 ** (8 * values.dtype.itemsize - 1))
