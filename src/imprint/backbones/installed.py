"""Which backbones can run here, found without importing whatever runs them."""

from imprint.backbones.record import Record, location
from imprint.core.extras import installed

EXTRAS = {"torchvision": "torch", "tflite": "litert", "sound": "litert", "timm": "timm", "sentence": "sentence"}
"""The extra that an adapter needs; the others need none."""


def lacks_extra(record: Record) -> str | None:
    """The extra that has to be installed before this backbone runs."""
    extra = EXTRAS.get(record.adapter)
    return extra if extra and not installed(extra) else None


def lacks_weights(record: Record) -> bool:
    """Whether the weights' file is not here yet."""
    return record.file is not None and not location(record).is_file()


def is_installed(record: Record) -> bool:
    """Whether `load` needs nothing more, neither a package nor a download."""
    return lacks_extra(record) is None and not lacks_weights(record)
