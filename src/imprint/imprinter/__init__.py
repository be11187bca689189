"""`Imprinter`: a backbone and a classifier as one model, from pictures to labels."""

from imprint.imprinter.gallery import Reason
from imprint.imprinter.items import Embedded
from imprint.imprinter.model import Guess, Imprinter

__all__ = ["Embedded", "Guess", "Imprinter", "Reason"]
