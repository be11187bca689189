"""One value in the place of another, whoever else is doing the same."""

from collections.abc import Callable
from threading import Lock
from typing import Any

_COMPARING = Lock()  # held for one comparison, never while something is computed


def compare_and_set(owner: object, name: str, step: Callable[[Any], Any]) -> None:
    """Put `step(value)` in the place of an attribute's value; tried again where another thread was faster.

    `step` sees None where there is no such attribute. It must change nothing itself, for it may run more than once.

    >>> from types import SimpleNamespace
    >>> counter = SimpleNamespace(value=1)
    >>> compare_and_set(counter, "value", lambda value: value + 1)
    >>> counter.value
    2
    """
    while True:
        value = getattr(owner, name, None)
        other = step(value)
        with _COMPARING:
            if getattr(owner, name, None) is value:
                setattr(owner, name, other)
                return
