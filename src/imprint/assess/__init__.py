"""How good a model is and what is wrong with data: pure functions of rows, labels and probabilities."""

from imprint.assess.evaluation import Evaluation, Mistake, PerClass, evaluation
from imprint.assess.inspection import Inspection, inspect_rows
from imprint.assess.mislabelled import Suspect

__all__ = ["Evaluation", "Inspection", "Mistake", "PerClass", "Suspect", "evaluation", "inspect_rows"]
