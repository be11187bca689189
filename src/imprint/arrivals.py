"""Classes in the order of imprinting, shared by heads that only added some."""

from collections.abc import Iterable, Sequence
from threading import Lock
from typing import Any

from imprint.method import ClassState


class Arrivals:
    """Labels and states of classes, appended to and never changed otherwise.

    Heads that only added classes share one of these, each with its own length, so that adding costs the same however
    many classes there are.
    """

    def __init__(self, labels: Iterable[Any] = (), states: Iterable[ClassState] = ()):
        self.labels, self.states = list(labels), list(states)
        self.places = {label: i for i, label in enumerate(self.labels)}
        self.lock = Lock()

    def followed_by(self, length: int, labels: Sequence[Any], states: Sequence[ClassState]) -> "Arrivals":
        """The first `length` classes and some more: these very arrivals where nobody else has added to them yet."""
        with self.lock:
            if len(self.labels) == length:
                self.states += states
                self.places.update({label: length + i for i, label in enumerate(labels)})
                self.labels += labels
                return self
        return Arrivals([*self.labels[:length], *labels], [*self.states[:length], *states])
