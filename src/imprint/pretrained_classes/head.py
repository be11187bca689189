"""`KeptHead`: the classes a network was pre-trained on and imprinted ones beside them, as one immutable value."""

from collections import Counter
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from imprint import backbones, normalisers
from imprint.calibration import Calibration
from imprint.core.errors import NotFittedError, ParameterError
from imprint.core.family import unknown
from imprint.core.types import Array, Proxies
from imprint.head import SCORES, Head, largest
from imprint.kernels.rows import unit_rows
from imprint.kernels.softmax import keep_winners
from imprint.method import Method
from imprint.pretrained_classes.strategy import Gated, Layer, Margin, Rows, gate, margin, towards


class Own(NamedTuple):
    """The classes of a network's own head that are still there: a row of weights and a bias each."""

    labels: tuple[str, ...]
    weights: Array  # (n, d)
    bias: Array  # (n,)

    @classmethod
    def of(cls, head: backbones.ClassifierHead) -> "Own":
        """The classes of a head by name; where two have the same one, the WordNet id stands behind it."""
        count = Counter(head.names)
        labels = (name if count[name] == 1 else f"{name} ({id_})" for name, id_ in zip(head.names, head.ids))
        return cls(tuple(labels), head.weights, head.bias)

    def without(self, gone: set[str]) -> "Own":
        """These but for some."""
        left = [i for i, label in enumerate(self.labels) if label not in gone]
        return Own(tuple(self.labels[i] for i in left), self.weights[left], self.bias[left])


class KeptHead:
    """A network's own classes and a `Head` of new ones. It reads as a `Head` does; changes give another one.

    `way` says how they decide together: `qi` by the cosine, all rows at unit length; `done` by the network's logits,
    new rows brought to the distribution of its weights; `margin` as `done`, and a new class takes an input only where
    it beats the old ones by the margin that nearly all new pictures reach; which new class it is, the new head says.

    >>> from imprint.method import Method
    >>> own = Own(("cat", "dog"), np.eye(3, dtype="float32")[:2], np.zeros(2, "float32"))
    >>> method = Method.of(norm_pre="l2", generator="mean", norm_post="l2", norm_inf="l2", aggregator="max")
    >>> emu = np.array([[0, 0.1, 0.9]], dtype="float32")
    >>> head = KeptHead("qi", own, Head(method, 0, "float32")).learn(emu, np.array(["emu"]))
    >>> head.classes[head.winners(np.vstack([np.eye(3, dtype="float32"), emu]))].tolist()
    ['cat', 'dog', 'emu', 'emu']
    """

    folds = None

    def __init__(self, way: str, own: Own, new: Head):
        self.way, self.own, self.imprinted = way, own, new
        self.seed, self.dtype, self.label_type, self.width = new.seed, new.dtype, new.label_type, new.width

    def __reduce__(self) -> Any:
        return KeptHead, (self.way, self.own, self.imprinted)

    def __len__(self) -> int:
        """How many classes it knows."""
        return len(self.own.labels) + len(self.imprinted)

    def __contains__(self, label: Any) -> bool:
        return label in self.own.labels or label in self.imprinted

    # Learning

    def learn(self, X: Array, y: Array) -> "KeptHead":
        """This head after new classes and more rows of imprinted ones; the network's own take no pictures."""
        if np.asarray(y).dtype.kind != "U":
            raise ParameterError("keep_head: the labels must be text, as the names of the network's own classes are.")
        if X.shape[1] != self.own.weights.shape[1]:
            widths = f"{X.shape[1]} columns, the network's own head {self.own.weights.shape[1]}"
            raise ParameterError(f"keep_head: the rows have {widths}.")
        twice = sorted({*np.unique(y).tolist()} & {*self.own.labels})
        if twice:
            advice = "give the new one another name, or forget the network's first"
            raise ParameterError(f"keep_head: {twice[0]!r} is a class of the network's own head; {advice}.")
        return KeptHead(self.way, self.own, self.imprinted.learn(X, y))

    def forget(self, label: Any) -> "KeptHead":
        """This head without a class, exactly as if it had never been there."""
        if label not in self:
            raise unknown("class", label, map(str, self.classes))
        if len(self.own.labels if label in self.own.labels else self.imprinted) == 1:
            kind = "of the network's own" if label in self.own.labels else "beside the network's own"
            raise ParameterError(f"forget({label!r}): it is the only class {kind}; keep_head needs at least one.")
        if label in self.own.labels:
            return KeptHead(self.way, self.own.without({label}), self.imprinted)
        return KeptHead(self.way, self.own, self.imprinted.forget(label))

    # What follows

    @cached_property
    def classes(self) -> Array:
        """The labels, sorted."""
        return np.sort([*self.own.labels, *self.imprinted.labels])

    @cached_property
    def method(self) -> Method:
        """How new proxies are made, and how all classes decide."""
        new = self.imprinted.method
        if self.way == "qi":
            return replace(new, aggregator=Layer(temperature=getattr(new.aggregator, "temperature", 1.0)))
        raw = normalisers.family.resolve("none")
        return replace(new, norm_inf=raw, aggregator=Layer() if self.way == "done" else Margin())

    @property
    def measure(self) -> str:
        """What `evidence` is: a similarity."""
        return self.method.aggregator.measure

    @cached_property
    def margin(self) -> float:
        """By how much a new class must beat the old ones; 0 unless the way is `margin`."""
        return margin(self._old, self.imprinted) if self.way == "margin" else 0.0

    @cached_property
    def proxies(self) -> Proxies:
        """The network's rows and the finished new proxies, sorted by class."""
        new, own = self.imprinted.proxies, self.own
        W = new.weights if self.way == "qi" else towards(own.weights, new.weights)
        rest = np.ones(len(own.labels)), np.zeros(len(own.labels))
        mass, spread = (np.concatenate(pair) for pair in zip(rest, (new.mass, new.spread)))
        labels = self._places[np.concatenate([np.arange(len(own.labels)), len(own.labels) + new.labels])]
        order = np.argsort(labels, kind="stable")
        weights = np.concatenate([self._old.weights, W.astype(self.dtype, copy=False)])
        return Proxies(weights[order], labels[order], mass[order], spread[order])

    @cached_property
    def prepared(self) -> Any:
        """What the classes decide with."""
        level = 0.0 if self.way == "qi" else float(np.median(self.own.bias)) - self.margin
        bias = np.full(len(self), level, dtype=self.dtype)
        bias[self._places[: len(self.own.labels)]] = self._old.bias
        if self.way != "margin":
            return Rows(self.proxies.weights, self.proxies.starts, bias)
        gated = gate(self.own.weights, self.own.bias, self.imprinted)
        return Gated(self._old, gated._replace(bias=gated.bias - self.dtype.type(self.margin)), self.imprinted,
                     self._places, bias)  # fmt: skip

    @cached_property
    def _old(self) -> Rows:
        own, starts = self.own, np.arange(len(self.own.labels))
        if self.way == "qi":
            return Rows(unit_rows(own.weights.astype(self.dtype)), starts, np.zeros(len(starts), self.dtype))
        return Rows(own.weights.astype(self.dtype), starts, own.bias.astype(self.dtype))

    @cached_property
    def _places(self) -> Array:
        """Where the network's classes, then the new ones as their head sorts them, stand among all."""
        return np.searchsorted(self.classes, [*self.own.labels, *self.imprinted.classes.tolist()])

    # Deciding

    def scores(self, Q: Array) -> Array:
        """Class scores of raw queries.  # (q, C)"""
        return self.method.aggregator.scores(self.method.norm_inf.apply(Q), self.prepared)

    def winners(self, Q: Array) -> Array:
        """The place in `classes` of the largest score of every query; on a tie the first.  # (q,)"""
        rows = max(1, SCORES // len(self))
        return np.concatenate([largest(self.scores(Q[i : i + rows])) for i in range(0, len(Q), rows)])

    def probabilities(self, S: Array) -> Array:
        """Class scores as probabilities; the winner's is the largest.  # (q, C)"""
        return keep_winners(self.method.aggregator.probabilities(S, self.prepared), S)

    def doubt(self, Q: Array) -> Array | None:
        """Nothing is known about it."""
        return None

    @property
    def calibration(self) -> Calibration:
        """Refused: it would take pictures of the network's own classes."""
        raise NotFittedError("A model that keeps its network's own classes has no pictures of them to judge itself by.")

    def known(self, Q: Array) -> Array:
        """Refused as `calibration` is."""
        return self.calibration.p_values(self.scores(Q), None)

    def evidence(self, x: Array) -> Array:
        """What every proxy says about one raw query.  # (p,)"""
        q = self.method.norm_inf.apply(x[None, :])[0]
        return self.method.aggregator.evidence(q, self.proxies, self.prepared, 0)


AnyHead: TypeAlias = Head | KeptHead
