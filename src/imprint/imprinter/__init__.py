"""`Imprinter`: a backbone and a classifier as one model, from pictures to labels."""

from imprint.imprinter.exemplars import Reason
from imprint.imprinter.items import Embedded
from imprint.imprinter.model import Imprinter
from imprint.imprinter.predictor import Guess

__all__ = ["Embedded", "Guess", "Imprinter", "Reason"]
