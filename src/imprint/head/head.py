"""`Head`: the fitted state, as one immutable value that any thread may read."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from imprint.aggregators._base import Aggregator, Change
from imprint.core.arrays import as_labels, cut, on_gpu, rows_at, to_device
from imprint.core.errors import NotFittedError, ParameterError
from imprint.core.family import unknown
from imprint.core.threads import Lazy
from imprint.core.types import Array, Proxies, State
from imprint.head.decider import Assessor, Calibrated, Decider
from imprint.method import ClassState, Method
from imprint.normalisers._base import Normaliser

PROXY_DEFAULTS = (("mass", 1.0), ("spread", 0.0))
"""What a proxy represents where its state does not say: one row, itself."""


@dataclass(frozen=True, eq=False)
class Head(Decider):
    """A method and the states of the classes, in the order of imprinting. `learn` and `forget` return another head.

    Proxies and what the aggregator prepares from them are computed when first needed.

    >>> from imprint.method import Method
    >>> method = Method.of(norm_pre="l2", generator="mean", norm_post="l2", norm_inf="l2", aggregator="max")
    >>> head = Head(method, seed=0, dtype="float32").learn(np.eye(2, dtype="float32"), np.array(["cat", "dog"]))
    >>> head.classes[head.winners(np.array([[0.1, 0.9]], dtype="float32"))].tolist()
    ['dog']
    >>> head.forget("cat").classes.tolist(), head.classes.tolist()
    (['dog'], ['cat', 'dog'])
    """

    method: Method
    seed: int
    dtype: Any
    labels: tuple[Any, ...] = ()
    states: tuple[ClassState, ...] = ()
    label_type: Any = None
    width: int | None = None
    folds: Assessor | None = None
    device: Any = None  # the GPU of the rows learnt last, where the aggregator computes too
    derived: Lazy = field(default_factory=Lazy, init=False, repr=False)

    def __post_init__(self) -> None:
        plain = {"dtype": np.dtype(self.dtype), "labels": tuple(self.labels), "states": tuple(self.states)}
        if self.label_type is not None:
            plain["label_type"] = np.dtype(self.label_type)
        for name, value in plain.items():
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return len(self.labels)

    def __contains__(self, label: Any) -> bool:
        return isinstance(label, Hashable) and label in self.labels

    @property
    def imprinted(self) -> "Head":
        return self

    @property
    def norm_inf(self) -> Normaliser:
        return self.method.norm_inf

    @property
    def aggregator(self) -> Aggregator:
        return self.method.aggregator

    # Learning

    def learn(self, X: Array, y: Array, weight: Array | None = None) -> "Head":
        if self.width not in (None, X.shape[1]):
            raise ParameterError(f"learn(X, y): X has {X.shape[1]} columns, the classes known so far {self.width}.")
        present, index = np.unique(y, return_inverse=True)
        index = index.astype(np.min_scalar_type(len(present)))  # few classes are sorted in one pass
        order, sizes = np.argsort(index, kind="stable"), np.bincount(index).tolist()
        rows = dict(zip(present.tolist(), cut(rows_at(X, order), sizes)))
        weights = {} if weight is None else dict(zip(rows, cut(np.asarray(weight)[order], sizes)))
        known = set(rows).intersection(self.labels)
        new = [label for label in rows if label not in known]
        states = self.states
        if known:
            states = tuple(
                self.method.extend(state, rows[label], self.seed, label, weights.get(label))
                if label in known
                else state
                for label, state in zip(self.labels, states)
            )
        new_weights = None if weight is None else [weights[label] for label in new]
        added = self.method.summarise([rows[label] for label in new], self.seed, new, new_weights)
        child = replace(
            self,
            labels=self.labels + tuple(new),
            states=states + tuple(added),
            label_type=present.dtype if self.label_type is None else np.result_type(self.label_type, present.dtype),
            width=X.shape[1],
            device=X.device if on_gpu(X) else None,
            folds=None if self.folds is None else self.folds.learn(X, y, weight),
        )
        return self._with_ancestor(child)

    def forget(self, label: Any) -> "Head":
        if label not in self:
            raise unknown("class", label, map(str, self.labels))
        if len(self) == 1:
            raise ParameterError(f"forget({label!r}): it is the only class; a classifier needs at least one.")
        i = self.labels.index(label)
        child = replace(
            self,
            labels=self.labels[:i] + self.labels[i + 1 :],
            states=self.states[:i] + self.states[i + 1 :],
            folds=None if self.folds is None else self.folds.forget(label),
        )
        return self._with_ancestor(child)

    def _with_ancestor(self, child: "Head") -> "Head":
        """The child, which prepares itself from the nearest ancestor that is prepared."""
        if self.method.per_class:
            child.derived.source = self if "prepared" in self.derived else self.derived.source
        return child

    # What follows from the states

    @property
    def classes(self) -> Array:
        return self.derived.get("classes", lambda: as_labels(sorted(self.labels), self.label_type))

    @property
    def proxies(self) -> Proxies:
        return self.derived.get("proxies", self._proxies)

    def _proxies(self) -> Proxies:
        order = sorted(range(len(self)), key=self.labels.__getitem__)
        summaries = [self.states[i].summary for i in order]
        return _with_mass(summaries, *self.method.weights(summaries, np.argsort(order).tolist(), self.dtype))

    def with_weights(self, weights: Array, sizes: Array) -> "Head":
        """The same with finished weights that were computed before and stored, so many for each class."""
        other = replace(self)
        summaries = [state.summary for state in self._sorted_states()]
        other.derived.put("proxies", _with_mass(summaries, weights, sizes.tolist()))
        return other

    def with_folds(self, folds: Assessor) -> "Head":
        """The same head with a calibration that was computed elsewhere; everything derived is shared."""
        other = replace(self, folds=folds)
        other.derived.share(self.derived)
        return other

    @property
    def prepared(self) -> Any:
        return self.derived.get("prepared", self._prepared)

    def _prepared(self) -> Any:
        sums, ancestor = self.sums(), self.derived.source
        prepared = None if ancestor is None else self.aggregator.update(self._change(ancestor), sums)
        if prepared is None:
            prepared = self.aggregator.prepare(self._on_device(self.proxies), sums)
        self.derived.source = None  # frees the memory of the ancestor
        return prepared

    def _on_device(self, proxies: Proxies) -> Proxies:
        """The proxies where the aggregator computes on them."""
        if self.device is None or not self.aggregator.takes_tensors:
            return proxies
        return proxies._replace(weights=to_device(proxies.weights, self.device))

    def _sorted_states(self) -> list[ClassState]:
        return [state for _, state in sorted(zip(self.labels, self.states), key=lambda pair: pair[0])]

    def sums(self) -> State:
        """The statistics of all training rows, merged in the order of the labels."""
        return self.aggregator.merge([state.sums for state in self._sorted_states()])

    def _change(self, ancestor: "Head") -> Change:
        """How the classes differ from those of an ancestor; the same are those whose states are the very same objects.

        Only the proxies of new classes are computed, which is possible because every class is imprinted alone.
        """
        then = dict(zip(ancestor.labels, ancestor.states))
        same = {label for label, state in zip(self.labels, self.states) if then.get(label) is state}
        removed = [i for i, label in enumerate(sorted(ancestor.labels)) if label not in same]
        summaries = [state.summary for state in self._sorted_states()]
        sizes = [len(rows) for rows in self.method.generator.proxies(summaries)]
        added = [i for i, label in enumerate(sorted(self.labels)) if label not in same]
        new, proxies = [summaries[i] for i in added], None
        if new:
            alone = _with_mass(new, *self.method.weights(new, range(len(new)), self.dtype))
            proxies = self._on_device(alone._replace(labels=np.array(added)[alone.labels]))
        labels = np.repeat(np.arange(len(sizes)), sizes)
        mass = _per_proxy(summaries, sizes, *PROXY_DEFAULTS[0])
        return Change(ancestor.prepared, np.array(removed, dtype=np.intp), proxies, labels, mass)

    # Calibration

    @property
    def calibrated(self) -> bool:
        return self.folds is not None

    @property
    def calibration(self) -> Calibrated:
        if self.folds is None:
            raise NotFittedError("This model was not calibrated: fit it with calibrate=True.")
        return self.folds.calibration


def _with_mass(summaries: Sequence[State], weights: Array, sizes: Sequence[int]) -> Proxies:
    """Finished weights, so many for each class, with the number of rows that each represents and their spread."""
    mass, spread = (_per_proxy(summaries, sizes, name, default) for name, default in PROXY_DEFAULTS)
    return Proxies(weights, np.repeat(np.arange(len(sizes)), sizes), mass, spread)


def _per_proxy(summaries: Sequence[State], sizes: Sequence[int], name: str, default: float) -> Array:
    """One number for every proxy, from the states that have it."""
    parts = [s[name] if name in s else np.full(n, default) for s, n in zip(summaries, sizes)]
    if [len(part) for part in parts] != list(sizes):
        raise ParameterError(f"A state's {name} must hold one number for each proxy of its class.")
    return np.concatenate(parts)
