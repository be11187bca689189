"""`Imprinter`: a backbone and a classifier as one model, from pictures to labels."""

from imprint.imprinter.answers import Guess
from imprint.imprinter.exemplars import Reason
from imprint.imprinter.items import Embedded
from imprint.imprinter.model import Imprinter

__all__ = ["Embedded", "Guess", "Imprinter", "Reason"]
