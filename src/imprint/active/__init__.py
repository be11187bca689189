"""Active learning: which rows of an unlabelled pool to label next, and when new inputs stop looking like old ones."""

from imprint.active.suggestions import Suggestions, suggest

__all__ = ["Suggestions", "suggest"]
