"""`Imprinter`: a backbone and a classifier as one model, from images to labels."""

from imprint.imprinter.items import Embedded
from imprint.imprinter.model import Imprinter
from imprint.imprinter.state import Guess, Reason

__all__ = ["Embedded", "Guess", "Imprinter", "Reason"]
