"""Evaluation of models and inspection of data: pure functions of rows, labels and
probabilities.
"""

from imprint.evaluation.evaluation import (
    Evaluation,
    Mistake,
    PerClass,
    evaluation,
)
from imprint.evaluation.inspection import Inspection, Suspect, inspect_rows

__all__ = [
    "Evaluation",
    "Inspection",
    "Mistake",
    "PerClass",
    "Suspect",
    "evaluation",
    "inspect_rows",
]
