"""Which parts of an input speak for the predicted class, and which for the second."""

from imprint.explanation.explain import explain
from imprint.explanation.explanation import Explanation

__all__ = ["Explanation", "explain"]
