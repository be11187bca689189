"""Networks of sound in TFLite files, through LiteRT: WAV files in, one embedding per recording."""

import math
import os
import wave
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from imprint.backbones.adapters.tflite import ended_at
from imprint.backbones.backbone import Backbone, extra, only_cpu, reason, thread_count
from imprint.backbones.record import Record, weights
from imprint.core.errors import FileError, ParameterError, UnreadableInput
from imprint.core.types import Array

VERSION = 1
RATE = 16_000  # samples a second that the network hears
WIDTHS = {1: "u1", 2: "<i2", 4: "<i4"}  # bytes of a sample and how NumPy reads them


class SoundBackbone(Backbone):
    """The average over frames of what the network says of each frame."""

    def __init__(self, record: Record, threads: int | None):
        content, digest = weights(record)
        super().__init__(record, digest, VERSION)
        runtime = extra("ai_edge_litert.interpreter", "litert", record.name)
        try:
            self._interpreter = runtime.Interpreter(
                model_content=ended_at(content, record), num_threads=thread_count(threads)
            )
            self._interpreter.allocate_tensors()
        except (ValueError, RuntimeError) as e:
            raise FileError(f"{record.name} is not a model LiteRT can run: {reason(e)}.") from None
        given, found = self._interpreter.get_input_details()[0], self._interpreter.get_output_details()[0]
        self._input, self._output, self._samples = given["index"], found["index"], int(given["shape"][-1])

    def prepare(self, item: str | os.PathLike[str] | Array) -> tuple[Array, ...]:
        """A WAV file, or samples in [-1, 1] at 16,000 a second, as frames of the network's length.

        A rest shorter than half a frame is left out; a longer one, or a short recording, is filled with silence.
        """
        if not isinstance(item, str | os.PathLike | np.ndarray):
            raise ParameterError(f"prepare({type(item).__name__}): a sound must be the path of a WAV file or samples.")
        samples = item if isinstance(item, np.ndarray) else read_wav(Path(item))
        if samples.ndim != 1 or samples.dtype != np.float32 or not samples.size or not np.isfinite(samples).all():
            raise ParameterError(
                f"prepare({samples.dtype} {samples.shape}): samples must be finite float32 (n,), n >= 1."
            )
        count = max(1, math.floor(len(samples) / self._samples + 0.5))
        whole = np.zeros(count * self._samples, np.float32)
        kept = samples[: len(whole)]
        whole[: len(kept)] = kept
        return tuple(whole.reshape(count, self._samples))

    def _forward(self, batch: Sequence[tuple[Array, ...]]) -> Array:
        return np.stack([np.mean([self._run(frame) for frame in frames], axis=0) for frames in batch])

    def _run(self, frame: Array) -> Array:
        self._interpreter.set_tensor(self._input, frame)
        self._interpreter.invoke()
        out: Array = self._interpreter.get_tensor(self._output).reshape(-1)
        return out


def read_wav(path: Path) -> Array:
    """The samples of a WAV file, its channels averaged, at 16,000 a second in [-1, 1], float32."""
    try:
        with wave.open(os.fspath(path), "rb") as f:
            channels, width, rate = f.getnchannels(), f.getsampwidth(), f.getframerate()
            raw = f.readframes(f.getnframes())
    except OSError as e:
        raise UnreadableInput(str(path), e.strerror or "it cannot be read") from None
    except (wave.Error, EOFError) as e:
        raise UnreadableInput(str(path), f"it is no WAV file of whole numbers ({reason(e)})") from None
    if width not in WIDTHS or rate < 1 or len(raw) < width * channels:
        raise UnreadableInput(str(path), "its samples must be of 8, 16 or 32 bits, one or more")
    values = np.frombuffer(raw[: len(raw) // (width * channels) * width * channels], WIDTHS[width])
    middle = 128 if width == 1 else 0
    unit = (values.astype(np.float64) - middle) / 2 ** (8 * width - 1)
    return _resampled(unit.reshape(-1, channels).mean(1), rate).astype(np.float32)


def _resampled(samples: Array, rate: int) -> Array:
    if rate == RATE:
        return samples
    from scipy.signal import resample_poly

    shared = math.gcd(rate, RATE)
    out: Array = resample_poly(samples, RATE // shared, rate // shared)
    return out


def load(source: Record, device: str, threads: int | None) -> SoundBackbone:
    """Open the file the record names."""
    only_cpu(source.name, device)
    return SoundBackbone(source, threads)
