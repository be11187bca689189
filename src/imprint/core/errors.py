"""One family of errors. Each message is a sentence: the call, then the rule."""

__all__ = [
    "DataWarning",
    "FileError",
    "ImprintError",
    "KindError",
    "MissingExtraError",
    "NotFittedError",
    "ParameterError",
    "SmallSampleWarning",
    "UnreadableInput",
]


class ImprintError(Exception):
    """Every error this library raises on purpose."""


class ParameterError(ImprintError, ValueError):
    """An argument has a value that the call cannot use."""


class KindError(ParameterError, TypeError):
    """An argument is of a kind that the call cannot use, such as a dict in the place of rows."""


class FileError(ImprintError, OSError):
    """A file cannot be read, written or trusted."""


class NotFittedError(ImprintError, ValueError, AttributeError):
    """A model is asked before it has learnt anything."""


class MissingExtraError(ImprintError, ImportError):
    """An optional package is not installed; the message names the command that installs it."""


class SmallSampleWarning(UserWarning):
    """There are too few rows for what was asked; the message says what to do."""


class DataWarning(UserWarning):
    """Training data that were left out, cut or labelled inconsistently; the model is fitted nevertheless."""


class UnreadableInput(ImprintError):  # noqa: N818 - it describes an input; the reader decides whether that is an error
    """One input among many cannot be read; those who read many record it and go on.

    >>> str(UnreadableInput("cat/7.jpg", "the file is truncated"))
    'Cannot read cat/7.jpg: the file is truncated.'
    """

    def __init__(self, name: str, reason: str):
        super().__init__(name, reason)
        self.name, self.reason = name, reason

    def __str__(self) -> str:
        return f"Cannot read {self.name}: {self.reason.rstrip('.')}."
