"""Calibration by cross-validation: temperature, expected accuracy and conformal p-values."""

from imprint.calibration.calibration import Calibration, OutOfFold, calibrate
from imprint.calibration.cross_validation import CrossValidation, out_of_fold, predict_out_of_fold
from imprint.calibration.temperature import calibration_error

__all__ = [
    "Calibration",
    "CrossValidation",
    "OutOfFold",
    "calibrate",
    "calibration_error",
    "out_of_fold",
    "predict_out_of_fold",
]
