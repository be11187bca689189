"""All errors, and parts of their messages. A message names the call, then the rule:
`top(n=0): n must be int >= 1.`
"""

import difflib
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from numbers import Integral

__all__ = [
    "DataWarning",
    "FileError",
    "ImprintError",
    "KindError",
    "MissingExtraError",
    "NotFittedError",
    "OutOfMemoryError",
    "ParameterError",
    "SmallSampleWarning",
    "TooFewProxiesError",
    "UnreadableInput",
]
MAX_LISTED_NAMES = 40  # in an error message


class ImprintError(Exception):
    """Base of all errors that this library raises on purpose."""


class ParameterError(ImprintError, ValueError):
    """An argument has a value that the call cannot use."""


def check_int(call: str, name: str, value: object, minimum: int = 1) -> int:
    """The value as an int; anything but an integer >= `minimum` is refused."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < minimum:
        raise ParameterError(
            f"{call}({name}={value!r}): {name} must be int >= {minimum}."
        )
    return int(value)


def unknown(kind: str, name: object, known: Iterable[object]) -> ParameterError:
    """The error for a name that does not exist, with a suggestion."""
    # the text of every name, and the name: labels may be numbers
    value_of = {str(value): value for value in known}
    names = list(value_of)
    similar = difflib.get_close_matches(str(name), names, MAX_LISTED_NAMES)
    hint = f" Did you mean {value_of[similar[0]]!r}?" if similar else ""
    listed = (
        names
        if len(names) <= MAX_LISTED_NAMES
        else (similar or names)[:MAX_LISTED_NAMES]
    )
    more = f" and {len(names) - len(listed)} more" if len(names) > len(listed) else ""
    return ParameterError(
        f"Unknown {kind} {name!r}.{hint} Known: {', '.join(listed)}{more}."
    )


class KindError(ParameterError, TypeError):
    """An argument is of a kind that the call cannot use, such as a dict instead of
    rows.
    """


def first_line(error: BaseException) -> str:
    """The first line of a message, for use within a sentence; the type of an error
    without a message.
    """
    return str(error).strip().partition("\n")[0].rstrip(".: ") or type(error).__name__


class TooFewProxiesError(ParameterError):
    """An aggregator needs more proxies than there are. Cross-validation does not assess
    rows with a model that lacks them.
    """


class FileError(ImprintError, OSError):
    """A file cannot be read, written or trusted."""


@contextmanager
def reporting(action: str, path: object) -> Iterator[None]:
    """Report an error of the operating system in one sentence: `Cannot write a.bin: No
    space left on device.`
    """
    try:
        yield
    except FileError:
        raise
    except OSError as e:
        raise FileError(f"Cannot {action} {path}: {e.strerror or e}.") from None


@contextmanager
def reporting_damage(path: object, kind: str, advice: str = "") -> Iterator[None]:
    """Report a missing or damaged file in one sentence; on damage, other libraries
    raise exceptions of any type. A lack of memory is no damage.
    """
    try:
        yield
    except (ImprintError, MemoryError):
        raise
    except Exception as e:
        if isinstance(e, OSError) and e.errno:
            raise FileError(f"Cannot read {path}: {e.strerror or e}.") from None
        raise FileError(
            f"{path} is not a readable {kind} ({first_line(e)[:120]}){advice}."
        ) from None


def require(condition: object) -> None:
    """Raise ValueError unless a condition on the content of a file holds; the caller
    reports the file.
    """
    if not condition:
        raise ValueError


class OutOfMemoryError(ImprintError, MemoryError):
    """The machine lacks the memory to read an input, which may be intact."""


class NotFittedError(ImprintError, ValueError, AttributeError):
    """A model is used before it was fitted."""


class MissingExtraError(ImprintError, ImportError):
    """An optional package is not installed; the message names the command that installs
    it.
    """


class SmallSampleWarning(UserWarning):
    """There are too few rows for the requested quantity; the message tells what to
    do.
    """


class DataWarning(UserWarning):
    """Training data that were left out, cut or labelled inconsistently; the model is
    fitted nevertheless.
    """


class UnreadableInput(ImprintError):  # noqa: N818 - it describes an input; the reader decides whether that is an error
    """One of many inputs cannot be read; a reader of many inputs records it and
    continues.
    """

    def __init__(self, name: str, reason: str):
        super().__init__(name, reason)
        self.name = name
        self.reason = reason

    def __str__(self) -> str:
        return f"Cannot read {self.name}: {self.reason.rstrip('.')}."


def count(n: int, noun: str) -> str:
    """A number and its noun."""
    plural = (
        f"{noun[:-1]}ies"
        if noun.endswith("y")
        else f"{noun}{'es' if noun.endswith('s') else 's'}"
    )
    return f"{n:,} {noun if n == 1 else plural}"


def first_names(names: Sequence[object], limit: int) -> str:
    """The first names, and how many more there are."""
    more = f" and {len(names) - limit:,} more" if len(names) > limit else ""
    return ", ".join(map(str, names[:limit])) + more


def percent(share: float | None) -> str:
    """A share in percent, such as `98.1 %`; empty for None.

    A share never rounds to certainty: 0.9999 is `> 99.9 %`, and 0.0001 is `< 0.1 %`.
    The pages write shares in the same way (`words.js`, `numbers.js`).
    """
    if share is None:
        return ""
    if 0.9995 <= share < 1:
        return "> 99.9 %"
    if 0 < share < 0.0005:
        return "< 0.1 %"
    return f"{100 * share:.1f} %"


# or change how others are displayed
INVISIBLE_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
JOINERS = "\u200c\u200d"  # invisible, but part of words and emoji


def printable(text: object, max_length: int = 500, keep: str = "") -> str:
    """A name or label, safe to print: invisible characters except those to `keep` are
    escaped, long texts truncated.
    """
    start = str(text)[: max_length + 1]
    invisible = {
        c
        for c in start
        if unicodedata.category(c) in INVISIBLE_CATEGORIES and c not in JOINERS + keep
    }
    shown = "".join(ascii(c)[1:-1] if c in invisible else c for c in start)
    return shown if len(shown) <= max_length else shown[: max_length - 1] + "…"
