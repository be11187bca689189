"""Weight imprinting: classifiers for new classes from frozen embeddings, without training."""

__version__ = "0.1.0"
