"""The scikit-learn side of `ImprintClassifier`, and the contents of a model file."""
