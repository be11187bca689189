import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from imprint.core.arrays import Array
from imprint.core.errors import ParameterError
from imprint.modalities._base import InputParts, Modality, refused, time_parts

SAMPLE_RATE = 16_000  # per second; that of arrays that come without their rate
PCM, IEEE_FLOAT, EXTENSIBLE = 1, 3, 0xFFFE  # format codes of WAV files


class Recording(NamedTuple):
    """One channel of sound: the average of the channels of a file."""

    samples: Array  # (n,) float32, from -1 to 1
    rate: int  # samples per second


@dataclass(frozen=True, kw_only=True)
class Sound(Modality):
    """Recordings: WAV files, or float32 samples in [-1, 1], at 16,000 per second or
    with their rate.
    """

    noun: ClassVar[str] = "sound"
    backbone: ClassVar[str | None] = "yamnet"

    def suffixes(self) -> frozenset[str]:
        return frozenset({".wav"})

    def suffix_of(self, raw: bytes) -> str:
        return ".wav"

    def read(self, raw: bytes) -> Recording:
        """The sound in a WAV file of 8, 16, 24 or 32 bits, or of floating point.

        `scipy.io.wavfile` is not used: it issues warnings, which threads cannot
        suppress.
        """
        if raw[:4] != b"RIFF" or raw[8:12] != b"WAVE":
            raise refused("the file is empty" if not raw else "not a WAV file")
        chunks = dict(_chunks(raw))
        head, data = chunks.get(b"fmt ", b"").ljust(26, b"\0"), chunks.get(b"data", b"")
        kind, channels, rate, _, frame, bits = struct.unpack_from("<HHIIHH", head)
        if kind == EXTENSIBLE:
            kind = int.from_bytes(head[24:26], "little")
        if data and (
            channels < 1 or rate < 1 or frame < 1 or frame != channels * bits // 8
        ):
            raise refused("the file is damaged")
        if not data or len(data) < frame:
            raise refused("the file has no samples")
        # samples that are not finite are refused below
        with np.errstate(over="ignore", invalid="ignore"):
            samples = _samples(data[: len(data) // frame * frame], kind, bits)
            mono: Array = samples.reshape(-1, channels).mean(axis=1, dtype=np.float32)
        if not np.isfinite(mono).all():
            raise refused("its samples are not finite")
        return Recording(mono, rate)

    def parts(self, item: Any) -> InputParts:
        """Equal times, each of which can be silent."""
        samples, rate = item

        def silent(time: slice) -> Recording:
            without = samples.copy()
            without[time] = 0
            return Recording(without, rate)

        return time_parts(samples, rate, silent)

    def convert(self, value: Any) -> Recording:
        samples, rate = (
            value
            if isinstance(value, tuple) and len(value) == 2
            else (value, SAMPLE_RATE)
        )
        if not isinstance(samples, np.ndarray):
            raise ParameterError(
                "A sound must be samples, or samples and their rate, not"
                f" {type(value).__name__}."
            )
        if (
            samples.ndim != 1
            or samples.dtype != np.float32
            or not samples.size
            or not np.isfinite(samples).all()
        ):
            what = f"{samples.dtype} of shape {samples.shape}"
            raise ParameterError(
                "The samples of a sound must be finite float32 (n,), n >= 1, not"
                f" {what}."
            )
        return Recording(samples, rate)

    def recognises(self, value: Any) -> bool:
        is_file = isinstance(value, bytes) and value.startswith(b"RIFF")
        return is_file or (
            isinstance(value, tuple)
            and len(value) == 2
            and isinstance(value[0], np.ndarray)
        )

    def sample(self, size: int) -> list[Any]:
        """Sounds of 5 seconds."""
        return [
            np.random.default_rng(0).normal(0, 0.1, 80_000).astype(np.float32)
        ] * size


def _chunks(raw: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The chunks of a RIFF file: their names and contents."""
    offset = 12
    while offset + 8 <= len(raw):
        size = int.from_bytes(raw[offset + 4 : offset + 8], "little")
        yield raw[offset : offset + 4], raw[offset + 8 : offset + 8 + size]
        offset += 8 + size + size % 2


def _samples(data: bytes, kind: int, bits: int) -> Array:
    """Samples as float32 from -1 to 1."""
    if kind == IEEE_FLOAT and bits in (32, 64):
        return np.frombuffer(data, f"<f{bits // 8}").astype(np.float32)
    if kind != PCM or bits not in (8, 16, 24, 32):
        raise refused(
            f"samples of {bits} bits in format {kind} are not read; save it as"
            " 16-bit PCM"
        )
    if bits == 8:
        return (np.frombuffer(data, np.uint8).astype(np.float32) - 128) / 128
    if bits == 24:
        # the lowest byte is zero
        padded = np.pad(np.frombuffer(data, np.uint8).reshape(-1, 3), ((0, 0), (1, 0)))
        data, bits = padded.tobytes(), 32
    return np.frombuffer(data, f"<i{bits // 8}").astype(np.float32) / np.float32(
        1 << (bits - 1)
    )
