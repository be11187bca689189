"""The scikit-learn side of `ImprintClassifier`: its parameters, fitted attributes and input checks."""
