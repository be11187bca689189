"""The fitted state: `Head`, and `Decider`, the base of all heads."""

from imprint.head.decider import Decider
from imprint.head.head import Head

__all__ = ["Decider", "Head"]
