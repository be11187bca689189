"""Active learning: which rows of an unlabelled pool to label next. Drift: when inputs
look unlike the training data.
"""

from imprint.active.suggestions import Suggestions, suggest

__all__ = ["Suggestions", "suggest"]
