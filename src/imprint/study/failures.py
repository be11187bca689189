"""Experiments that fail: which errors are those of one experiment, and how they are
told.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from imprint.core.errors import ImprintError

# What the code of a component may raise about the rows of an experiment. Errors of the
# machine (memory, files, a killed process) are those of a whole unit.
COMPONENT_ERRORS = (
    ImprintError,
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RuntimeError,
    TypeError,
    ValueError,
)


def reason_of(error: BaseException) -> str:
    """The type and the first line of an error."""
    return f"{type(error).__name__}: {error}".splitlines()[0]


class Failure(NamedTuple):
    """Experiments of a unit that failed for one reason."""

    reason: str
    indices: list[int]  # in the experiments of the unit


def by_reason(reasons: Mapping[int, str]) -> list[Failure]:
    """Failed experiments, given the reason of each, together with others of the same
    reason.
    """
    indices: dict[str, list[int]] = defaultdict(list)
    for i, reason in reasons.items():
        indices[reason].append(i)
    return [Failure(reason, members) for reason, members in indices.items()]


def examples(experiments: Sequence[str]) -> str:
    """The first of some experiments, and how many more there are."""
    if len(experiments) == 1:
        return experiments[0]
    return f"{experiments[0]} and {len(experiments) - 1:,} more"
