"""`Head`: what was learnt, as one immutable value that any thread may read."""

from collections.abc import Hashable, Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from imprint.aggregators._base import Predecessor
from imprint.arrivals import Arrivals
from imprint.calibration import Assessor, Calibration
from imprint.core.arrays import all_finite, cut, dtype_name, joined, rows_at, to_numpy
from imprint.core.errors import NotFittedError, ParameterError
from imprint.core.family import unknown
from imprint.core.labels import as_labels
from imprint.core.types import Array, Proxies, State
from imprint.kernels.softmax import keep_winners
from imprint.method import ClassState, Method

SCORES = 2**24  # held at a time where only the winners are asked for

PROXY_DEFAULTS = (("mass", 1.0), ("spread", 0.0))
"""What a proxy stands for where its state does not say: one row, itself."""


class Head:
    """Method, states of the classes, and what follows from them. Learning and forgetting give another head.

    Proxies and what the aggregator prepares from them are put together when first needed.

    >>> from imprint.method import Method
    >>> method = Method.of(norm_pre="l2", generator="mean", norm_post="l2", norm_inf="l2", aggregator="max")
    >>> head = Head(method, seed=0, dtype="float32").learn(np.eye(2, dtype="float32"), np.array(["cat", "dog"]))
    >>> head.classes[head.winners(np.array([[0.1, 0.9]], dtype="float32"))].tolist()
    ['dog']
    >>> head.forget("cat").classes.tolist(), head.classes.tolist()
    (['dog'], ['cat', 'dog'])
    """

    def __init__(
        self,
        method: Method,
        seed: int,
        dtype: Any,
        labels: Iterable[Any] = (),
        states: Iterable[ClassState] = (),
        label_type: Any = None,
        width: int | None = None,
        folds: Assessor | None = None,
    ):
        self.width, self.folds = width, folds
        self.method, self.seed, self.dtype = method, seed, np.dtype(dtype)
        self.label_type = None if label_type is None else np.dtype(label_type)
        self._arrivals = Arrivals(labels, states)
        self._length = len(self._arrivals.labels)
        self._origin: Head | None = None

    def __reduce__(self) -> Any:
        parts = self.method, self.seed, self.dtype, self.labels, self.states, self.label_type, self.width, self.folds
        return Head, parts

    def __len__(self) -> int:
        """How many classes it knows."""
        return self._length

    def __contains__(self, label: Any) -> bool:
        return isinstance(label, Hashable) and self._arrivals.places.get(label, self._length) < self._length

    @property
    def labels(self) -> list[Any]:
        """The labels as plain values, in the order of imprinting."""
        return self._arrivals.labels[: self._length]

    @property
    def states(self) -> list[ClassState]:
        """The states of the classes, in the order of imprinting."""
        return self._arrivals.states[: self._length]

    # Learning

    def learn(self, X: Array, y: Array) -> "Head":
        """This head after new classes and more rows of known ones."""
        other = self._taught(X, y)
        other.folds = None if self.folds is None else self.folds.learn(X, y)
        return other

    def _taught(self, X: Array, y: Array) -> "Head":
        if self.width not in (None, X.shape[1]):
            raise ParameterError(f"learn(X, y): X has {X.shape[1]} columns, the classes known so far {self.width}.")
        present, index = np.unique(y, return_inverse=True)
        index = index.astype(np.min_scalar_type(len(present)))  # few classes are sorted in one pass
        parts = cut(rows_at(X, np.argsort(index, kind="stable")), np.bincount(index).tolist())
        rows = dict(zip(present.tolist(), parts))
        label_type = present.dtype if self.label_type is None else np.result_type(self.label_type, present.dtype)
        known, new = [k for k in rows if k in self], [k for k in rows if k not in self]
        made = self.method.summarise([rows[k] for k in new], self.seed, new)
        if not known:
            arrivals = self._arrivals.followed_by(self._length, new, made)
            return self._child(arrivals, self._length + len(new), label_type, X.shape[1])
        states = dict(zip(self.labels, self.states))
        for label in known:
            states[label] = self.method.extend(states[label], rows[label], self.seed, label)
        states.update(zip(new, made))
        return self._child(Arrivals(states, states.values()), len(states), label_type, X.shape[1])

    def forget(self, label: Any) -> "Head":
        """This head without a class, exactly as if it had never been there."""
        if label not in self:
            raise unknown("class", label, map(str, self.labels))
        if len(self) == 1:
            raise ParameterError(f"forget({label!r}): it is the only class; a classifier needs at least one.")
        left = {k: s for k, s in zip(self.labels, self.states) if k != label}
        other = self._child(Arrivals(left, left.values()), len(left), self.label_type, self.width)
        other.folds = None if self.folds is None else self.folds.forget(label)
        return other

    def _child(self, arrivals: Arrivals, length: int, label_type: Any, width: int | None) -> "Head":
        """A head with other classes. It remembers the nearest ancestor that is prepared, to prepare itself from."""
        other = Head(self.method, self.seed, self.dtype, label_type=label_type, width=width)
        other._arrivals, other._length = arrivals, length
        if self.method.per_class:
            other._origin = self if "prepared" in self.__dict__ else self._origin
        return other

    # What follows from the states

    @cached_property
    def classes(self) -> Array:
        """The labels, sorted."""
        return as_labels(sorted(self.labels), self.label_type)

    @cached_property
    def proxies(self) -> Proxies:
        """The finished proxies, sorted by class."""
        labels, states = self.labels, self.states
        order = sorted(range(len(labels)), key=labels.__getitem__)
        arrival = np.argsort(order).tolist()
        kept = [states[i].kept for i in order]
        weights, sizes = self.method.weights(kept, arrival, self.dtype)
        mass, spread = (_each(kept, sizes, name, usual) for name, usual in PROXY_DEFAULTS)
        return Proxies(weights, np.repeat(np.arange(len(sizes)), sizes), mass, spread)

    def with_weights(self, weights: Array, sizes: Array) -> "Head":
        """The same with finished proxies that were computed before and kept, so many for each class."""
        other = Head(*self.__reduce__()[1])
        states = [s.kept for _, s in sorted(zip(self.labels, self.states), key=lambda pair: pair[0])]
        mass, spread = (_each(states, sizes.tolist(), name, usual) for name, usual in PROXY_DEFAULTS)
        other.__dict__["proxies"] = Proxies(weights, np.repeat(np.arange(len(sizes)), sizes), mass, spread)
        return other

    @cached_property
    def prepared(self) -> Any:
        """What the aggregator computes once from the proxies."""
        made = self.method.aggregator.prepare(self.proxies, self._sums(), self._before(self._origin))
        self._origin = None  # its memory may go
        return made

    def _sums(self) -> State:
        """The sums over all training rows, added up in the order of the labels."""
        states = [s.sums for _, s in sorted(zip(self.labels, self.states), key=lambda pair: pair[0])]
        return self.method.aggregator.merge(states)

    def _before(self, then: "Head | None") -> Predecessor | None:
        """What an ancestor prepared, and the proxies of the classes whose states are still the very same."""
        if then is None:
            return None
        now_at, then_at = ({k: i for i, k in enumerate(h.classes.tolist())} for h in (self, then))
        states = dict(zip(then.labels, then.states))
        common = [k for k, state in zip(self.labels, self.states) if states.get(k) is state]
        pairs = [(_places(then.proxies, then_at[k]), _places(self.proxies, now_at[k])) for k in sorted(common)]
        if not pairs:
            return None
        old, new = (np.concatenate(side) for side in zip(*pairs))
        return Predecessor(then.prepared, old, new)

    # Deciding

    def scores(self, Q: Array) -> Array:
        """Class scores of raw queries.  # (q, C)"""
        return self.method.aggregator.scores(self.method.norm_inf.apply(Q), self.prepared)

    def winners(self, Q: Any) -> Any:
        """The place in `classes` of the largest score of every query; on a tie the first.  # (q,)"""
        rows = max(1, SCORES // len(self))
        return joined([largest(self.scores(Q[i : i + rows])) for i in range(0, len(Q), rows)])

    def probabilities(self, S: Array) -> Array:
        """Class scores as probabilities, calibrated where there are folds; the winner's is the largest.  # (q, C)"""
        P = self.method.aggregator.probabilities(S, self.prepared)
        return keep_winners(P if self.folds is None else self.folds.calibration.probabilities(P), S)

    def doubt(self, Q: Array) -> Array | None:
        """How far queries are from what the proxies tell about; None where the aggregator cannot say.  # (q,)"""
        return self.method.aggregator.doubt(self.method.norm_inf.apply(Q), self.prepared)

    @property
    def calibration(self) -> Calibration:
        """What the folds tell about this head; refused where there are none."""
        if self.folds is None:
            raise NotFittedError("This model was not calibrated: fit it with calibrate=True.")
        return self.folds.calibration

    def known(self, Q: Array) -> Array:
        """For every query the p-value that it belongs to a class this head knows, in (0, 1].  # (q,) float64"""
        calibration, rows = self.calibration, max(1, SCORES // len(self))
        found = []
        for i in range(0, len(Q), rows):
            S, doubt = self.scores(Q[i : i + rows]), self.doubt(Q[i : i + rows])
            largest(S)  # refuses what overflows
            found.append(calibration.p_values(to_numpy(S), None if doubt is None else to_numpy(doubt)))
        return np.concatenate(found)

    @property
    def imprinted(self) -> "Head":
        """The part of it that was imprinted: all of it."""
        return self

    @property
    def measure(self) -> str:
        """What `evidence` is; see `Aggregator.measure`."""
        return self.method.aggregator.measure

    def evidence(self, x: Array) -> Array:
        """What every proxy says about one raw query and the class that wins it; see `Aggregator.evidence`.  # (p,)"""
        winner = int(self.winners(x[None, :])[0])
        q = self.method.norm_inf.apply(x[None, :])[0]
        return self.method.aggregator.evidence(q, self.proxies, self.prepared, winner)


def largest(S: Any) -> Any:
    """The place of the largest score of every row; scores that overflow are refused."""
    if not all_finite(S):
        raise ParameterError(f"the scores overflow {dtype_name(S)}; scale the rows down or use norm_inf='l2'.")
    return S.argmax(axis=1)


def _each(states: Sequence[State], sizes: Sequence[int], name: str, usual: float) -> Array:
    """One number for every proxy, from the states that hold it."""
    parts = [s[name] if name in s else np.full(n, usual) for s, n in zip(states, sizes)]
    if [len(part) for part in parts] != list(sizes):
        raise ParameterError(f"A state's {name} must hold one number for each proxy of its class.")
    return np.concatenate(parts)


def _places(proxies: Proxies, c: int) -> Array:
    a, b = np.searchsorted(proxies.labels, (c, c + 1))
    return np.arange(a, b)
