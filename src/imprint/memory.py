"""What a classifier has learnt, apart from how scikit-learn asks for it."""

from typing import Any

import numpy as np

from imprint.core.types import Array, Proxies, State
from imprint.method import LENGTHS, Method

LABEL_KINDS = "biufU"  # of NumPy's types: booleans, whole numbers, text


class Memory:
    """What a classifier has learnt: the state of every class in the order of imprinting, and the proxies made of it."""

    def __init__(self, method: Method, seed: int, dtype: Any):
        self.method, self.seed, self.dtype = method, seed, np.dtype(dtype)
        self.states: dict[Any, State] = {}
        self.classes: Array = np.array([])
        self.proxies = Proxies(np.empty((0, 0)), np.empty(0, dtype=np.intp))

    def copy(self) -> "Memory":
        """Another one that may change without this one changing."""
        other = Memory(self.method, self.seed, self.dtype)
        other.states, other.classes, other.proxies = dict(self.states), self.classes, self.proxies
        return other

    def imprint(self, X: Array, y: Array) -> None:
        """Summarise new classes, extend known ones."""
        present, index = np.unique(y, return_inverse=True)
        order = np.argsort(index, kind="stable")
        groups = np.split(order, np.cumsum(np.bincount(index))[:-1])
        for label, rows in zip(present, groups):
            key = plain(label)
            if key in self.states:
                self.states[key] = self.method.extend(self.states[key], X[rows], self.seed, key)
            else:
                self.states[key] = self.method.summarise(X[rows], self.seed, key)
        self._finish(np.union1d(self.classes, present) if len(self.classes) else present, set(map(plain, present)))

    def drop(self, key: Any) -> None:
        """Forget a class."""
        del self.states[key]
        left = [c for c in self.classes.tolist() if c != key]
        self._finish(as_labels(left, self.classes.dtype), set())

    def _finish(self, classes: Array, changed: set[Any]) -> None:
        """Proxies of every class; those of unchanged classes are kept where they cannot have moved."""
        keys = [plain(c) for c in classes]
        kept: dict[Any, Array] = {}
        if self.method.per_class and len(self.classes):
            parts = np.split(self.proxies.weights, np.searchsorted(self.proxies.labels, range(1, len(self.classes))))
            kept = {k: w for c, w in zip(self.classes, parts) if (k := plain(c)) not in changed}
        todo = [k for k in keys if k not in kept]
        places = {k: i for i, k in enumerate(todo)}
        order = [places[k] for k in self.states if k in places]
        if todo:
            made = self.method.weights([self.states[k] for k in todo], order, self.dtype)
            kept |= dict(zip(todo, made))
        weights = [kept[k] for k in keys]
        owners = np.repeat(np.arange(len(keys)), [len(w) for w in weights])
        self.classes, self.proxies = classes, Proxies(np.concatenate(weights), owners)

    def verify(self, width: int, arrays: dict[str, Array]) -> None:
        """Raise ValueError where what was read from a file does not fit together."""
        weights, owners = self.proxies
        tables = [a for state in self.states.values() for a in state.values() if a.ndim == 2]
        sound = (
            self.dtype.kind == "f"
            and self.classes.dtype.kind in LABEL_KINDS
            and len(self.classes) == len(self.states)
            and len(arrays) == 2 + sum(map(len, self.states.values()))
            and all(LENGTHS in state and len(state) > 1 for state in self.states.values())
            and weights.dtype == self.dtype
            and owners.ndim == 1
            and weights.shape == (len(owners), width)
            and owners.dtype.kind == "i"
            and np.array_equal(np.unique(owners), np.arange(len(self.states)))
            and bool((np.diff(owners) >= 0).all())
            and all(t.shape[1] == width for t in tables)
            and all(a.dtype.kind in "iuf" and np.isfinite(a).all() for a in arrays.values())
        )
        if not sound:
            raise ValueError

    @property
    def reach(self) -> float:
        """The score that stands for certainty; see `Method.reach`."""
        return self.method.reach([self.states[plain(c)] for c in self.classes], self.proxies.weights)


def plain(label: Any) -> Any:
    """A label as the plain Python value it stands for."""
    return label.item() if isinstance(label, np.generic) else label


def as_labels(values: list[Any], dtype: np.dtype[Any]) -> Array:
    """Labels of a type; text as wide as its longest."""
    labels = np.array(values, dtype=str if dtype.kind == "U" else dtype)
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError
    return labels


def states_in(arrays: dict[str, Array], count: int) -> list[State]:
    """The arrays named `state.0.rows`, `state.0.mass`, `state.1.rows` and so on, by class."""
    states: dict[str, State] = {str(i): {} for i in range(count)}
    for name, array in arrays.items():
        if name.startswith("state."):
            _, i, key = name.split(".", 2)
            states[i][key] = array
    return list(states.values())
