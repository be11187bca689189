"""New classes next to the classes that a network was pre-trained on, as one immutable
value, and their aggregators.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from imprint import backbones, normalisers
from imprint.aggregators._base import Aggregator, Facts
from imprint.aggregators.max import facts_of_maxima, graph_of_maxima
from imprint.calibration.calibration import MIN_PROBABILITY
from imprint.core.arrays import Array, Proxies
from imprint.core.component import param
from imprint.core.errors import NotFittedError, ParameterError, unknown
from imprint.core.labels import kind_of
from imprint.core.threads import lazy
from imprint.head import Decider, Head
from imprint.head.decider import check_new_name
from imprint.head.merging import Merged, merge_heads
from imprint.kernels.quantiles import ranks
from imprint.kernels.rows import unit_rows
from imprint.kernels.scores import class_maxima, softmax
from imprint.normalisers._base import Scaling

STRATEGIES = ("margin", "qi", "done")
MARGIN_SHARE = 0.99  # of held-out images of new classes, which must reach the margin


class PretrainedClasses(NamedTuple):
    """The remaining classes of a network's classification head: a row of weights and a
    bias each.
    """

    labels: tuple[str, ...]
    weights: Array  # (n, d)
    bias: Array  # (n,)

    @classmethod
    def of(cls, head: backbones.ClassifierHead) -> "PretrainedClasses":
        """The classes of a head by name; WordNet ids distinguish equal names."""
        count = Counter(head.names)
        labels = (
            name if count[name] == 1 else f"{name} ({id_})"
            for name, id_ in zip(head.names, head.ids)
        )
        return cls(tuple(labels), head.weights, head.bias)

    def equals(self, other: "PretrainedClasses") -> bool:
        """Whether both have the same classes, weights and biases."""
        return self.labels == other.labels and all(
            np.array_equal(one, two) for one, two in zip(self[1:], other[1:])
        )

    def without(self, removed: set[str]) -> "PretrainedClasses":
        """All classes except some."""
        rest = [i for i, label in enumerate(self.labels) if label not in removed]
        return PretrainedClasses(
            tuple(self.labels[i] for i in rest), self.weights[rest], self.bias[rest]
        )


@dataclass(frozen=True, eq=False)
class PretrainedHead(Decider):
    """A network's pre-trained classes and a `Head` of new ones. `learn` and `forget`
    return another one.

    `strategy` states how they decide together: `qi` by the cosine, all rows at unit
    length; `done` by the network's logits, with new rows matched to the quantiles of
    its weights; `margin` as `done`, but a new class wins only if it exceeds the
    pre-trained ones by the margin that nearly all new images reach. The head then
    decides which one.
    """

    calibrated: ClassVar[bool] = False
    strategy: str
    pretrained: PretrainedClasses
    imprinted: Head

    @property
    def labels(self) -> tuple[Any, ...]:
        return *self.pretrained.labels, *self.imprinted.labels

    def learn(
        self, X: Array, y: Array, weight: Array | None = None
    ) -> "PretrainedHead":
        """This head after new classes and more rows of imprinted ones; pre-trained
        classes take no images.
        """
        if kind_of(y) != "text":
            raise ParameterError(
                "keep_head: the labels must be text, as the names of the network's own"
                " classes are."
            )
        if X.shape[1] != (width := self.pretrained.weights.shape[1]):
            raise ParameterError(
                f"keep_head: the rows have {X.shape[1]} columns, the network's own head"
                f" {width}."
            )
        if shared := sorted({*np.unique(y).tolist()} & {*self.pretrained.labels}):
            advice = "give the new one another name, or forget the network's first"
            raise ParameterError(
                f"keep_head: {shared[0]!r} is a class of the network's own head;"
                f" {advice}."
            )
        return replace(self, imprinted=self.imprinted.learn(X, y, weight))

    def forget(self, label: Any) -> "PretrainedHead":
        """This head without a class, pre-trained or imprinted."""
        if label not in self:
            raise unknown("class", label, self.classes.tolist())
        is_pretrained = label in self.pretrained.labels
        if len(self.pretrained.labels if is_pretrained else self.imprinted) == 1:
            kind = (
                "of the network's own" if is_pretrained else "next to the network's own"
            )
            raise ParameterError(
                f"forget({label!r}): it is the only class {kind}; keep_head needs at"
                " least one."
            )
        if is_pretrained:
            return replace(self, pretrained=self.pretrained.without({label}))
        return replace(self, imprinted=self.imprinted.forget(label))

    def forget_rows(
        self, X: Array, labels: Sequence[Any] | None = None
    ) -> "PretrainedHead":
        """This head without some rows of new classes."""
        return replace(self, imprinted=self.imprinted.forget_rows(X, labels))

    def without_rows(self) -> "PretrainedHead":
        """This head without training rows, unless they determine the margin."""
        if self.strategy == "margin":
            raise ParameterError(
                "share: the margin of keep_head is computed from stored rows; fit the"
                " model with keep_head='qi' or 'done'."
            )
        return replace(self, imprinted=self.imprinted.without_rows())

    def only(self, labels: set[Any]) -> "PretrainedHead":
        pretrained = self.pretrained.without({*self.pretrained.labels} - labels)
        new = labels.intersection(self.imprinted.labels)
        if not pretrained.labels or not new:
            raise ParameterError(
                "split(classes): a model with keep_head needs at least one class of the"
                " network's own and one next to them."
            )
        return replace(self, pretrained=pretrained, imprinted=self.imprinted.only(new))

    def rename(self, old: Any, new: Any) -> "PretrainedHead":
        """This head with another name for a new class."""
        check_new_name(self.labels, old, new)
        if old in self.pretrained.labels:
            raise ParameterError(
                f"rename({old!r}, {new!r}): it is a class of the network's own head,"
                " whose classes have fixed names."
            )
        return replace(self, imprinted=self.imprinted.rename(old, new))

    def merged_with(
        self, others: Sequence["PretrainedHead"], names: Sequence[str]
    ) -> Merged:
        for head, name in zip(others, names[1:]):
            if head.strategy != self.strategy:
                raise ParameterError(
                    f"merge: {name} has keep_head {head.strategy!r} and {names[0]}"
                    f" {self.strategy!r}; fit the models with the same settings."
                )
            if not self.pretrained.equals(head.pretrained):
                raise ParameterError(
                    f"merge: {name} and {names[0]} keep different classes of their"
                    " networks; forget the same classes in both."
                )
        new = merge_heads([head.imprinted for head in (self, *others)], names)
        return new._replace(head=replace(self, imprinted=new.head))

    @property
    def norm_inf(self) -> Scaling:
        return (
            self.imprinted.norm_inf
            if self.strategy == "qi"
            else normalisers.family.resolve("none")
        )

    @property
    def aggregator(self) -> Aggregator:
        if self.strategy == "qi":
            return Logits(
                temperature=getattr(self.imprinted.aggregator, "temperature", 1.0)
            )
        return Logits() if self.strategy == "done" else LogitsWithMargin()

    @property
    def description(self) -> str:
        return (
            f"{self.imprinted.method}, next to {len(self.pretrained.labels)}"
            f" pre-trained classes ({self.strategy})"
        )

    @lazy
    def margin(self) -> float:
        """By how much a new class must exceed the pre-trained ones: 99 % of held-out
        images of new classes do.

        It is at least 0. It is 0 for other strategies, and if no class has a second
        image.
        """
        if self.strategy != "margin":
            return 0.0
        pretrained, logits = self._pretrained_layer(), Logits()
        # the strategy requires `calibrate=True`
        folds, gaps = self.imprinted.folds, [np.empty(0)]
        for f, head in enumerate(folds.heads):
            held_out = [
                rows.rows[rows.fold == f]
                for label, rows in folds.held.items()
                if label in head
            ]
            if sum(map(len, held_out)):
                X = np.concatenate(held_out)
                new_scores, old_scores = (
                    logits.scores(X, gate_layer(pretrained, head)),
                    logits.scores(X, pretrained),
                )
                gaps.append(new_scores.max(axis=1) - old_scores.max(axis=1))
        margins = np.concatenate(gaps)
        return (
            max(0.0, float(np.quantile(margins, 1 - MARGIN_SHARE, method="lower")))
            if len(margins)
            else 0.0
        )

    @lazy
    def proxies(self) -> Proxies:
        """The network's rows and the normalised new proxies, sorted by class."""
        new, n = self.imprinted.proxies, len(self.pretrained.labels)
        W = (
            new.weights
            if self.strategy == "qi"
            else match_quantiles(self.pretrained.weights, new.weights)
        )
        mass = np.concatenate([np.ones(n), new.mass])
        spread = np.concatenate([np.zeros(n), new.spread])
        labels = self._indices()[np.concatenate([np.arange(n), n + new.labels])]
        order = np.argsort(labels, kind="stable")
        weights = np.concatenate(
            [
                self._pretrained_layer().weights,
                W.astype(self.imprinted.dtype, copy=False),
            ]
        )
        return Proxies(weights[order], labels[order], mass[order], spread[order])

    @lazy
    def prepared(self) -> Any:
        """One linear layer; for the strategy `margin`, with the head that chooses among
        the new classes.
        """
        pretrained, new = self._pretrained_layer(), self.imprinted
        indices, n = self._indices(), len(self.pretrained.labels)
        bias = np.empty(len(self), dtype=new.dtype)
        bias[indices[:n]] = pretrained.bias
        bias[indices[n:]] = (
            0.0
            if self.strategy == "qi"
            else float(np.median(self.pretrained.bias)) - self.margin
        )
        if self.strategy != "margin":
            return LinearLayer(self.proxies.weights, self.proxies.starts, bias)
        weights = np.concatenate(
            [pretrained.weights, gate_layer(pretrained, new).weights]
        )[np.argsort(indices)]
        return LinearLayer(weights, np.arange(len(self)), bias, new, indices[n:])

    def _pretrained_layer(self) -> "LinearLayer":
        (labels, weights, bias), dtype = self.pretrained, self.imprinted.dtype
        if self.strategy == "qi":
            return LinearLayer(
                unit_rows(weights.astype(dtype)),
                np.arange(len(labels)),
                np.zeros(len(labels), dtype),
            )
        return LinearLayer(
            weights.astype(dtype), np.arange(len(labels)), bias.astype(dtype)
        )

    def _indices(self) -> Array:
        """The indices in `classes` of the pre-trained classes, then of the new ones as
        their head sorts them.
        """
        return np.searchsorted(
            self.classes, [*self.pretrained.labels, *self.imprinted.classes.tolist()]
        )

    @property
    def calibration(self) -> Any:
        """Refused: it would need images of the pre-trained classes."""
        raise NotFittedError(
            "With keep_head a model has no images of the network's own classes to"
            " calibrate with."
        )


class LinearLayer(NamedTuple):
    """A linear layer whose classes may have several rows, and perhaps the head that
    chooses among the new classes.
    """

    weights: Array  # (p, d) sorted by class
    starts: Array  # (C,)
    bias: Array  # (C,)
    new: Head | None = None
    new_classes: Array | None = None  # their indices in all classes


@dataclass(frozen=True, kw_only=True)
class Logits(Aggregator):
    """A linear layer: a class scores the largest inner product of the query with its
    rows, plus its bias.
    """

    temperature: float = param(
        1.0, "divides the scores before the softmax", gt=0, detail=True
    )
    measure = "similarity"

    def scores(self, Q: Array, prepared: LinearLayer) -> Array:
        return class_maxima(Q, prepared.weights, prepared.starts) + prepared.bias

    def probabilities(self, S: Array, prepared: Any) -> Array:
        return softmax(S / self.temperature)

    def evidence(self, q: Array, proxies: Proxies, prepared: Any, winner: int) -> Array:
        return np.asarray(proxies.weights @ q + prepared.bias[proxies.labels])

    def facts(self, proxies: Proxies, prepared: LinearLayer) -> Facts | None:
        return (
            None
            if prepared.new is not None
            else facts_of_maxima(self.temperature, prepared.bias)
        )

    def graph(
        self, g: Any, x: str, proxies: Proxies, prepared: LinearLayer
    ) -> tuple[str, str] | None:
        if prepared.new is not None:
            return None
        dtype = proxies.weights.dtype
        S = g.add(
            "Add", graph_of_maxima(g, x, proxies), g.constant(prepared.bias, dtype)
        )
        return S, g.add(
            "Softmax", g.add("Div", S, g.constant(self.temperature, dtype)), axis=1
        )


@dataclass(frozen=True, kw_only=True)
class LogitsWithMargin(Logits):
    """Every class scores its logit, and the margin is part of the bias of new classes.
    The head chooses among these.

    The class that it chooses gets their largest logit. The scores of the other new
    classes are lower by the differences of their log-probabilities among the new
    classes.
    """

    def scores(self, Q: Array, prepared: Any) -> Array:
        S, new, columns = (
            super().scores(Q, prepared),
            prepared.new,
            prepared.new_classes,
        )
        P = np.maximum(
            new.probabilities(new.scores(Q)), MIN_PROBABILITY, dtype=np.float64
        )
        S[:, columns] = S[:, columns].max(axis=1, keepdims=True) + np.log(
            P / P.max(axis=1, keepdims=True)
        )
        return S


def match_quantiles(weights: Array, W: Array) -> Array:
    """The rows W with the ranks of their values kept and the values replaced by the
    mean sorted row of `weights`.
    """
    target = np.sort(weights, axis=1).mean(axis=0, dtype=np.float64).astype(W.dtype)
    return np.asarray(target[ranks(W)])


def gate_layer(pretrained: LinearLayer, new: Head) -> LinearLayer:
    """The layer that decides between new and pre-trained classes, by one row for every
    new class.

    The row is the mean of the class, matched to the quantiles of the pre-trained
    weights; its bias is their median.
    """
    W = new.proxies.weights
    mass = new.proxies.mass
    sums = np.add.reduceat(W * mass[:, None], new.proxies.starts, axis=0)
    rows = np.add.reduceat(mass, new.proxies.starts, axis=0)
    means = (sums / rows[:, None]).astype(W.dtype)
    bias = np.full(len(means), np.median(pretrained.bias), dtype=pretrained.bias.dtype)
    return LinearLayer(
        match_quantiles(pretrained.weights, means), np.arange(len(means)), bias
    )
