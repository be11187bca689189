"""Pixels without a network: the baseline of every backbone."""

from imprint.backbones.backbone import ImageBackbone, check_cpu
from imprint.backbones.record import NO_WEIGHTS, Record
from imprint.core.arrays import Array

VERSION = 1


class RawBackbone(ImageBackbone):
    """The prepared image itself, row by row."""

    def __init__(self, record: Record, device: str, threads: int | None):
        check_cpu(record.name, device)
        super().__init__(record, NO_WEIGHTS, VERSION)

    def _forward(self, batch: Array) -> Array:
        return self.preprocess.arrange(batch)


load = RawBackbone
