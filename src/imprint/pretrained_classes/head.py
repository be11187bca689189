"""`PretrainedHead`: the classes that a network was pre-trained on next to imprinted ones, as one immutable value."""

from collections import Counter
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from imprint import backbones, normalisers
from imprint.aggregators._base import Aggregator
from imprint.core.errors import NotFittedError, ParameterError
from imprint.core.family import unknown
from imprint.core.threads import lazy
from imprint.core.types import Array, Proxies
from imprint.head import Decider, Head
from imprint.kernels.rows import unit_rows
from imprint.normalisers._base import Normaliser
from imprint.pretrained_classes.strategy import (
    Gated,
    LinearLayer,
    Logits,
    LogitsWithMargin,
    gate,
    margin,
    match_quantiles,
)


class PretrainedClasses(NamedTuple):
    """The remaining classes of a network's classification head: a row of weights and a bias each."""

    labels: tuple[str, ...]
    weights: Array  # (n, d)
    bias: Array  # (n,)

    @classmethod
    def of(cls, head: backbones.ClassifierHead) -> "PretrainedClasses":
        """The classes of a head by name; WordNet ids distinguish equal names."""
        count = Counter(head.names)
        labels = (name if count[name] == 1 else f"{name} ({id_})" for name, id_ in zip(head.names, head.ids))
        return cls(tuple(labels), head.weights, head.bias)

    def without(self, removed: set[str]) -> "PretrainedClasses":
        """All classes except some."""
        rest = [i for i, label in enumerate(self.labels) if label not in removed]
        return PretrainedClasses(tuple(self.labels[i] for i in rest), self.weights[rest], self.bias[rest])


@dataclass(frozen=True, eq=False)
class PretrainedHead(Decider):
    """A network's pre-trained classes and a `Head` of new ones. `learn` and `forget` return another one.

    `strategy` states how they decide together: `qi` by the cosine, all rows at unit length; `done` by the network's
    logits, with new rows matched to the quantiles of its weights; `margin` as `done`, but a new class wins only if it
    exceeds the pre-trained ones by the margin that nearly all new pictures reach. The head then decides which one.

    >>> from imprint.method import Method
    >>> classes = PretrainedClasses(("cat", "dog"), np.eye(3, dtype="float32")[:2], np.zeros(2, "float32"))
    >>> method = Method.of(norm_pre="l2", generator="mean", norm_post="l2", norm_inf="l2", aggregator="max")
    >>> emu = np.array([[0, 0.1, 0.9]], dtype="float32")
    >>> head = PretrainedHead("qi", classes, Head(method, 0, "float32")).learn(emu, np.array(["emu"]))
    >>> head.classes[head.winners(np.vstack([np.eye(3, dtype="float32"), emu]))].tolist()
    ['cat', 'dog', 'emu', 'emu']
    """

    label_type: ClassVar[None] = None
    calibrated: ClassVar[bool] = False
    strategy: str
    pretrained: PretrainedClasses
    imprinted: Head

    @property
    def labels(self) -> tuple[Any, ...]:
        return *self.pretrained.labels, *self.imprinted.labels

    def learn(self, X: Array, y: Array, weight: Array | None = None) -> "PretrainedHead":
        """This head after new classes and more rows of imprinted ones; pre-trained classes take no pictures."""
        if np.asarray(y).dtype.kind != "U":
            raise ParameterError("keep_head: the labels must be text, as the names of the network's own classes are.")
        if X.shape[1] != self.pretrained.weights.shape[1]:
            widths = f"{X.shape[1]} columns, the network's own head {self.pretrained.weights.shape[1]}"
            raise ParameterError(f"keep_head: the rows have {widths}.")
        taken = sorted({*np.unique(y).tolist()} & {*self.pretrained.labels})
        if taken:
            advice = "give the new one another name, or forget the network's first"
            raise ParameterError(f"keep_head: {taken[0]!r} is a class of the network's own head; {advice}.")
        return PretrainedHead(self.strategy, self.pretrained, self.imprinted.learn(X, y, weight))

    def forget(self, label: Any) -> "PretrainedHead":
        if label not in self:
            raise unknown("class", label, map(str, self.classes))
        is_pretrained = label in self.pretrained.labels
        if len(self.pretrained.labels if is_pretrained else self.imprinted) == 1:
            kind = "of the network's own" if is_pretrained else "next to the network's own"
            raise ParameterError(f"forget({label!r}): it is the only class {kind}; keep_head needs at least one.")
        if is_pretrained:
            return PretrainedHead(self.strategy, self.pretrained.without({label}), self.imprinted)
        return PretrainedHead(self.strategy, self.pretrained, self.imprinted.forget(label))

    @property
    def norm_inf(self) -> Normaliser:
        return self.imprinted.norm_inf if self.strategy == "qi" else normalisers.family.resolve("none")

    @property
    def aggregator(self) -> Aggregator:
        if self.strategy == "qi":
            return Logits(temperature=getattr(self.imprinted.aggregator, "temperature", 1.0))
        return Logits() if self.strategy == "done" else LogitsWithMargin()

    @property
    def description(self) -> str:
        return f"{self.imprinted.method}, next to {len(self.pretrained.labels)} pre-trained classes ({self.strategy})"

    @lazy
    def margin(self) -> float:
        """By how much a new class must exceed the pre-trained ones; 0 unless the strategy is `margin`."""
        return margin(self._pretrained_layer(), self.imprinted) if self.strategy == "margin" else 0.0

    @lazy
    def proxies(self) -> Proxies:
        """The network's rows and the finished new proxies, sorted by class."""
        new, n = self.imprinted.proxies, len(self.pretrained.labels)
        W = new.weights if self.strategy == "qi" else match_quantiles(self.pretrained.weights, new.weights)
        mass, spread = np.concatenate([np.ones(n), new.mass]), np.concatenate([np.zeros(n), new.spread])
        labels = self._indices()[np.concatenate([np.arange(n), n + new.labels])]
        order = np.argsort(labels, kind="stable")
        weights = np.concatenate([self._pretrained_layer().weights, W.astype(self.imprinted.dtype, copy=False)])
        return Proxies(weights[order], labels[order], mass[order], spread[order])

    @lazy
    def prepared(self) -> Any:
        """The linear layer of all classes or, for the strategy `margin`, two layers and the head of the new classes."""
        layer, new, indices = self._pretrained_layer(), self.imprinted, self._indices()
        new_bias = 0.0 if self.strategy == "qi" else float(np.median(self.pretrained.bias)) - self.margin
        bias = np.full(len(self), new_bias, dtype=new.dtype)
        bias[indices[: len(self.pretrained.labels)]] = layer.bias
        if self.strategy != "margin":
            return LinearLayer(self.proxies.weights, self.proxies.starts, bias)
        gates = gate(self.pretrained.weights, self.pretrained.bias, new)
        return Gated(layer, gates._replace(bias=gates.bias - new.dtype.type(self.margin)), new, indices, bias)

    def _pretrained_layer(self) -> LinearLayer:
        classes, dtype = self.pretrained, self.imprinted.dtype
        starts = np.arange(len(classes.labels))
        if self.strategy == "qi":
            return LinearLayer(unit_rows(classes.weights.astype(dtype)), starts, np.zeros(len(starts), dtype))
        return LinearLayer(classes.weights.astype(dtype), starts, classes.bias.astype(dtype))

    def _indices(self) -> Array:
        """The indices in `classes` of the pre-trained classes, then of the new ones as their head sorts them."""
        return np.searchsorted(self.classes, [*self.pretrained.labels, *self.imprinted.classes.tolist()])

    @property
    def calibration(self) -> Any:
        """Refused: it would need pictures of the pre-trained classes."""
        raise NotFittedError("With keep_head a model has no pictures of the network's own classes to calibrate with.")
