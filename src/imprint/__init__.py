"""Weight imprinting: classifiers for new classes from frozen embeddings, without
training.
"""

from typing import TYPE_CHECKING, Any

from imprint.core import __version__

__all__ = ["ImprintClassifier", "Imprinter", "__version__", "recipe"]

if TYPE_CHECKING:
    from imprint.classifier import ImprintClassifier
    from imprint.imprinter import Imprinter
    from imprint.recipes import recipe

_HOMES = {
    "ImprintClassifier": "imprint.classifier",
    "Imprinter": "imprint.imprinter",
    "recipe": "imprint.recipes",
}


def __getattr__(name: str) -> Any:
    """Public names are imported when first used, so that the command line starts
    fast.
    """
    if name not in _HOMES:
        raise AttributeError(f"module 'imprint' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
