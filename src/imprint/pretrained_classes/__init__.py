"""New classes next to the classes that a network was pre-trained on, as one immutable
value, and their aggregators.
"""

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, NoReturn

import numpy as np

from imprint import backbones, normalisers
from imprint.aggregators._base import Aggregator, Facts
from imprint.aggregators.max import facts_of_maxima, graph_of_maxima
from imprint.calibration.calibration import MIN_PROBABILITY
from imprint.core.arrays import Array, Proxies
from imprint.core.component import param
from imprint.core.errors import NotFittedError, ParameterError, unknown
from imprint.core.graph import GraphBuilder
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
# Of held-out images of new classes, which must reach the margin. A matter of taste: one
# new image in a hundred is lost to the pre-trained classes, which lose fewer for it.
MARGIN_SHARE = 0.99


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
        return (
            self.labels == other.labels
            and np.array_equal(self.weights, other.weights)
            and np.array_equal(self.bias, other.bias)
        )

    def without(self, removed: Set[Hashable]) -> "PretrainedClasses":
        """All classes except some."""
        rest = [i for i, label in enumerate(self.labels) if label not in removed]
        labels = tuple(self.labels[i] for i in rest)
        return PretrainedClasses(labels, self.weights[rest], self.bias[rest])


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
        self,
        X: Array,
        y: Array,
        weight: Array | None = None,
    ) -> "PretrainedHead":
        """This head after new classes and more rows of imprinted ones; pre-trained
        classes take no images.
        """
        if kind_of(y) != "text":
            raise ParameterError(
                "keep_head: the labels must be text, as the names of the network's own"
                " classes are."
            )
        width = self.pretrained.weights.shape[1]
        if X.shape[1] != width:
            raise ParameterError(
                f"keep_head: the rows have {X.shape[1]} columns, the network's own head"
                f" {width}."
            )
        shared = sorted({*np.unique(y).tolist()} & {*self.pretrained.labels})
        if shared:
            advice = "give the new one another name, or forget the network's first"
            raise ParameterError(
                f"keep_head: {shared[0]!r} is a class of the network's own head;"
                f" {advice}."
            )
        return replace(self, imprinted=self.imprinted.learn(X, y, weight))

    def forget(self, label: Hashable) -> "PretrainedHead":
        """This head without a class, pre-trained or imprinted."""
        if label not in self:
            raise unknown("class", label, self.classes.tolist())
        is_pretrained = label in self.pretrained.labels
        kind = "next to the network's own"
        count = len(self.imprinted)
        if is_pretrained:
            kind = "of the network's own"
            count = len(self.pretrained.labels)
        if count == 1:
            raise ParameterError(
                f"forget({label!r}): it is the only class {kind}; keep_head needs at"
                " least one."
            )
        if is_pretrained:
            return replace(self, pretrained=self.pretrained.without({label}))
        return replace(self, imprinted=self.imprinted.forget(label))

    def forget_rows(
        self,
        X: Array,
        labels: Sequence[Hashable] | None = None,
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

    def rename(self, old: Hashable, new: Hashable) -> "PretrainedHead":
        """This head with another name for a new class."""
        check_new_name(self.labels, old, new)
        if old in self.pretrained.labels:
            raise ParameterError(
                f"rename({old!r}, {new!r}): it is a class of the network's own head,"
                " whose classes have fixed names."
            )
        return replace(self, imprinted=self.imprinted.rename(old, new))

    def merged_with(
        self,
        others: Sequence["PretrainedHead"],
        names: Sequence[str],
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
        # logits depend on the length of a query, cosines do not
        if self.strategy == "qi":
            return self.imprinted.norm_inf
        return normalisers.family.resolve("none")

    @property
    def aggregator(self) -> Aggregator:
        if self.strategy == "done":
            return Logits()
        if self.strategy == "margin":
            return LogitsWithMargin()
        # not every aggregator has a temperature
        temperature = getattr(self.imprinted.aggregator, "temperature", 1.0)
        return Logits(temperature=temperature)

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
        # without held-out rows there is no margin to learn
        gaps = np.concatenate([np.empty(0), *self._gaps_of_folds()])
        if not len(gaps):
            return 0.0
        # "lower" is a gap that occurs, so that its row still reaches the margin
        margin = np.quantile(gaps, 1 - MARGIN_SHARE, method="lower")
        return max(0.0, float(margin))

    def _gaps_of_folds(self) -> Iterator[Array]:
        """By how much held-out images of new classes exceed the pre-trained classes, in
        each fold.
        """
        pretrained = self._pretrained_layer()
        logits = Logits()
        # the strategy requires `calibrate=True`
        folds = self.imprinted.folds
        for f, head in enumerate(folds.heads):
            held_out = [
                rows.rows[rows.fold == f]
                for label, rows in folds.held.items()
                if label in head
            ]
            if not sum(map(len, held_out)):
                continue
            X = np.concatenate(held_out)
            new_scores = logits.scores(X, gate_layer(pretrained, head))
            old_scores = logits.scores(X, pretrained)
            yield new_scores.max(axis=1) - old_scores.max(axis=1)

    @lazy
    def proxies(self) -> Proxies:
        """The network's rows and the normalised new proxies, sorted by class."""
        new = self.imprinted.proxies
        n = len(self.pretrained.labels)
        new_weights = new.weights
        if self.strategy != "qi":
            new_weights = match_quantiles(self.pretrained.weights, new.weights)
        new_weights = new_weights.astype(self.imprinted.dtype, copy=False)
        weights = np.concatenate([self._pretrained_layer().weights, new_weights])
        # a row of the network stands for itself
        mass = np.concatenate([np.ones(n), new.mass])
        spread = np.concatenate([np.zeros(n), new.spread])
        positions = np.concatenate([np.arange(n), n + new.labels])
        labels = self._indices()[positions]
        order = np.argsort(labels, kind="stable")
        return Proxies(weights[order], labels[order], mass[order], spread[order])

    @lazy
    def prepared(self) -> "LinearLayer":
        """One linear layer; for the strategy `margin`, with the head that chooses among
        the new classes.
        """
        pretrained = self._pretrained_layer()
        new = self.imprinted
        indices = self._indices()
        n = len(self.pretrained.labels)
        bias = np.empty(len(self), dtype=new.dtype)
        bias[indices[:n]] = pretrained.bias
        bias[indices[n:]] = self._bias_of_new_classes()
        if self.strategy != "margin":
            return LinearLayer(self.proxies.weights, self.proxies.starts, bias)
        gate = gate_layer(pretrained, new)
        weights = np.concatenate([pretrained.weights, gate.weights])
        weights = weights[np.argsort(indices)]
        return LinearLayer(weights, np.arange(len(self)), bias, new, indices[n:])

    def _bias_of_new_classes(self) -> float:
        """New classes have the bias of a usual pre-trained class; cosines have none."""
        if self.strategy == "qi":
            return 0.0
        return float(np.median(self.pretrained.bias)) - self.margin

    def _pretrained_layer(self) -> "LinearLayer":
        """The network's own classes alone, in their order."""
        labels, weights, bias = self.pretrained
        weights = weights.astype(self.imprinted.dtype)
        bias = bias.astype(self.imprinted.dtype)
        if self.strategy == "qi":
            weights = unit_rows(weights)
            bias = np.zeros_like(bias)
        return LinearLayer(weights, np.arange(len(labels)), bias)

    def _indices(self) -> Array:
        """The indices in `classes` of the pre-trained classes, then of the new ones as
        their head sorts them.
        """
        labels = [*self.pretrained.labels, *self.imprinted.classes.tolist()]
        return np.searchsorted(self.classes, labels)

    @property
    def calibration(self) -> NoReturn:
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
        1.0,
        "divides the scores before the softmax",
        gt=0,
        detail=True,
    )
    measure = "similarity"

    def scores(self, Q: Array, prepared: LinearLayer) -> Array:
        return class_maxima(Q, prepared.weights, prepared.starts) + prepared.bias

    def probabilities(self, S: Array, prepared: LinearLayer) -> Array:
        return softmax(S / self.temperature)

    def evidence(
        self,
        q: Array,
        proxies: Proxies,
        prepared: LinearLayer,
        winner: int,
    ) -> Array:
        bias = prepared.bias[proxies.labels]
        return np.asarray(proxies.weights @ q + bias)

    def facts(self, proxies: Proxies, prepared: LinearLayer) -> Facts | None:
        # an export of arrays has no place for the head that chooses a new class
        if prepared.new is not None:
            return None
        return facts_of_maxima(self.temperature, prepared.bias)

    def graph(
        self,
        g: GraphBuilder,
        x: str,
        proxies: Proxies,
        prepared: LinearLayer,
    ) -> tuple[str, str] | None:
        if prepared.new is not None:
            return None
        dtype = proxies.weights.dtype
        maxima = graph_of_maxima(g, x, proxies)
        scores = g.add("Add", maxima, g.constant(prepared.bias, dtype))
        scaled = g.add("Div", scores, g.constant(self.temperature, dtype))
        return scores, g.add("Softmax", scaled, axis=1)


@dataclass(frozen=True, kw_only=True)
class LogitsWithMargin(Logits):
    """Every class scores its logit, and the margin is part of the bias of new classes.
    The head chooses among these.

    The class that it chooses gets their largest logit. The scores of the other new
    classes are lower by the differences of their log-probabilities among the new
    classes.
    """

    def scores(self, Q: Array, prepared: LinearLayer) -> Array:
        S = super().scores(Q, prepared)
        new = prepared.new
        columns = prepared.new_classes
        if new is None or columns is None:
            return S
        P = new.probabilities(new.scores(Q))
        # the logarithm of zero would be infinite
        P = np.maximum(P, MIN_PROBABILITY, dtype=np.float64)
        largest = S[:, columns].max(axis=1, keepdims=True)
        S[:, columns] = largest + np.log(P / P.max(axis=1, keepdims=True))
        return S


def match_quantiles(weights: Array, W: Array) -> Array:
    """The rows W with the ranks of their values kept and the values replaced by the
    mean sorted row of `weights`.
    """
    mean = np.sort(weights, axis=1).mean(axis=0, dtype=np.float64)
    target = mean.astype(W.dtype)
    return np.asarray(target[ranks(W)])


def gate_layer(pretrained: LinearLayer, new: Head) -> LinearLayer:
    """The layer that decides between new and pre-trained classes, by one row for every
    new class.

    The row is the mean of the class, matched to the quantiles of the pre-trained
    weights; its bias is their median.
    """
    W = new.proxies.weights
    mass = new.proxies.mass
    starts = new.proxies.starts
    # the mean of the training rows of a class, from the masses of its proxies
    sums = np.add.reduceat(W * mass[:, None], starts, axis=0)
    rows = np.add.reduceat(mass, starts, axis=0)
    means = (sums / rows[:, None]).astype(W.dtype)
    usual_bias = np.median(pretrained.bias)
    bias = np.full(len(means), usual_bias, dtype=pretrained.bias.dtype)
    weights = match_quantiles(pretrained.weights, means)
    return LinearLayer(weights, np.arange(len(means)), bias)
