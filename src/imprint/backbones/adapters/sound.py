"""Networks of sound in TFLite files, through LiteRT: samples in, one embedding per
recording.
"""

import math
from collections.abc import Sequence

import numpy as np

from imprint.backbones.adapters.tflite import Interpreter
from imprint.backbones.backbone import Backbone
from imprint.backbones.record import Record
from imprint.core.arrays import Array
from imprint.core.errors import UnreadableInput
from imprint.modalities.sound import SAMPLE_RATE

VERSION = 2  # version 1 did not dequantise
MIN_RATE, MAX_RATE = 1_000, 768_000  # samples per second of a recording


class SoundBackbone(Backbone):
    """The average of the embeddings of all frames."""

    slice_rows = 1

    def __init__(self, record: Record, device: str, threads: int | None):
        self._interpreter = Interpreter(record, device, threads)
        super().__init__(record, self._interpreter.digest, VERSION)
        self._samples = int(self._interpreter.inputs[0]["shape"][-1])

    def prepare(self, item: Array | tuple[Array, int]) -> tuple[Array, ...]:
        """A recording as frames of the network's length.

        A remainder shorter than half a frame is left out; a longer one, or a short
        recording, is padded with silence.
        """
        sound = resampled(*super().prepare(item))
        size = self._samples * max(1, math.floor(len(sound) / self._samples + 0.5))
        padded = np.pad(sound[:size], (0, max(0, size - len(sound))))
        return tuple(padded.reshape(-1, self._samples))

    def _forward(self, batch: Sequence[tuple[Array, ...]]) -> Array:
        run = self._interpreter.run
        return np.stack(
            [
                np.mean([run(frame).reshape(-1) for frame in frames], axis=0)
                for frames in batch
            ]
        )


def resampled(samples: Array, rate: int) -> Array:
    """The same sound at 16,000 samples a second; frequencies that either rate cannot
    carry are filtered out.
    """
    if rate == SAMPLE_RATE:
        return samples
    if not MIN_RATE <= rate <= MAX_RATE:
        raise UnreadableInput(
            "a sound",
            f"{rate:,} samples a second; the rate must be {MIN_RATE:,} to {MAX_RATE:,}",
        )
    from scipy.signal import resample_poly

    divisor = math.gcd(rate, SAMPLE_RATE)
    return resample_poly(
        samples.astype(np.float64), SAMPLE_RATE // divisor, rate // divisor
    ).astype(np.float32)


load = SoundBackbone
