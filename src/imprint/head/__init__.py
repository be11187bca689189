"""The fitted state: `Head`, and `Decider`, the interface of everything that decides."""

from imprint.head.decider import Assessor, Calibrated, Decider, check_label_types, largest
from imprint.head.head import Head

__all__ = ["Assessor", "Calibrated", "Decider", "Head", "check_label_types", "largest"]
