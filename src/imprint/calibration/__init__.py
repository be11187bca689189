"""Calibration by cross-validation: temperature, expected accuracy and conformal
p-values.
"""

from imprint.calibration.calibration import Calibration, OutOfFold, calibration_error
from imprint.calibration.cross_validation import CrossValidation, out_of_fold
from imprint.calibration.fold_predictions import predict_out_of_fold
from imprint.calibration.shared import SharedCalibration

__all__ = [
    "Calibration",
    "CrossValidation",
    "OutOfFold",
    "SharedCalibration",
    "calibration_error",
    "out_of_fold",
    "predict_out_of_fold",
]
