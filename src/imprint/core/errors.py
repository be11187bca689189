"""One family of errors. Each message is a sentence: the call, then the rule."""


class ImprintError(Exception):
    """Every error this library raises on purpose."""


class ParameterError(ImprintError, ValueError):
    """An argument has a value that the call cannot use."""


class FileError(ImprintError, OSError):
    """A file cannot be read, written or trusted."""


class MissingExtraError(ImprintError, ImportError):
    """An optional package is not installed; the message names the command that installs it."""
