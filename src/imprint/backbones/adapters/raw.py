"""Pixels without a network: the baseline of every backbone."""

from imprint.backbones.backbone import PictureBackbone, only_cpu
from imprint.backbones.record import NO_WEIGHTS, Record
from imprint.core.types import Array

VERSION = 1


class RawBackbone(PictureBackbone):
    """The prepared picture itself, row by row."""

    def _forward(self, batch: Array) -> Array:
        return self.preprocess.arrange(batch)


def load(source: Record, device: str, threads: int | None) -> RawBackbone:
    """Nothing to open; `threads` does not matter."""
    only_cpu(source.name, device)
    return RawBackbone(source, NO_WEIGHTS, VERSION)
