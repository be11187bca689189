"""The fitted state of an `Imprinter`: a head and the exemplars that explain its
answers, and their stored form.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from imprint import backbones, generators, recipes
from imprint.calibration.cross_validation import rows_by_class
from imprint.calibration.held import find_rows
from imprint.core.arrays import Array, digest
from imprint.core.errors import FileError, ParameterError, require, unknown
from imprint.core.files.container import reading
from imprint.core.label_sets import single_labels
from imprint.core.labels import as_labels, check_kinds, renamed_key
from imprint.estimator.persistence import (
    IMAGES,
    head_from_parts,
    head_to_parts,
    read_class_weight,
    stored_class_weight,
)
from imprint.head import Decider, Head
from imprint.head.card import ModelCard, model_card
from imprint.head.decider import merge
from imprint.head.merging import Merged
from imprint.head.windows import newest_rows, remaining
from imprint.imprinter.embedder import NO_BACKBONE, BackboneEmbedder
from imprint.imprinter.items import Embedded
from imprint.kernels.matching import matching_rows
from imprint.kernels.neighbours import nearest
from imprint.kernels.rows import squared_norms
from imprint.modalities.embedding import check_width
from imprint.pretrained_classes import STRATEGIES, PretrainedClasses, PretrainedHead
from imprint.tags import TagHead
from imprint.tags.head import renamed_set, without_label

PROXY_BLOCK = 1024  # proxies that are compared with the inputs of a class at once
# up to this number, comparing all pairs is faster than preparing a neighbour search
MAX_COMPARED_PAIRS = 1 << 18
STRATEGY_RECIPES = {"qi": "qi2018", "done": "hosoda2024"}
"""The published methods that define a strategy; `done` matches proxies to the weights
of the head.
"""


def check_blocks(blocks: tuple[int, ...], expected: tuple[int, ...]) -> None:
    """Refuse data that state other blocks than the model's."""
    if blocks and expected and blocks != expected:
        raise ParameterError(
            f"The embeddings have blocks of {', '.join(map(str, blocks))} columns, and"
            f" the model was fitted on blocks of {', '.join(map(str, expected))}."
        )


class Guess(NamedTuple):
    """A class and its probability."""

    label: Any
    probability: float


class Reason(NamedTuple):
    """A proxy that contributes to a prediction: its class, its contribution, and its
    exemplar.

    `value` is a similarity, a distance or a signed weight; see `Imprinter.measure`.
    `image` names the exemplar, the nearest training input of that class. It is None
    if the class was imprinted from embeddings without names.
    """

    label: Any
    value: float
    image: str | None


class Exemplars(NamedTuple):
    """The training inputs stored for one class: names, embeddings, and for each proxy
    the index of the nearest.
    """

    names: tuple[str, ...]
    rows: Array  # (r, d) the embeddings, or rows of a file among which they are
    nearest: Array  # (p_c,) index into names
    chosen: Array | None = None  # (e,) which of the rows they are, if not all

    @property
    def X(self) -> Array:  # noqa: N802 - a matrix
        """The embeddings.  # (e, d)"""
        return self.rows if self.chosen is None else self.rows[self.chosen]

    def only(self, chosen: Array) -> "Exemplars":
        """Some of the inputs, whose nearest proxies are not known yet."""
        names = [name for name, is_chosen in zip(self.names, chosen) if is_chosen]
        return Exemplars(tuple(names), self.X[chosen], np.empty(0, dtype=np.intp))


ExemplarsByClass = dict[Any, Exemplars]


class ImprinterState(NamedTuple):
    """A head and the exemplars of its classes: one immutable value, which one thread
    reads while another learns.
    """

    head: Decider
    exemplars: ExemplarsByClass
    named: bool = False  # whether one row of each class is its name
    class_weight: Any = None  # of the `ImprintClassifier` that was fitted

    def with_rows(self, rows: Embedded, max_rows: int | None = None) -> Self:
        """The state after more rows, of known or of new classes. A model of tags also
        accepts rows with one label.

        With `max_rows`, each class that gets rows keeps its newest ones only.
        """
        head, imprinted = self.head, self.head.imprinted
        if self.class_weight is not None:
            raise ParameterError(
                "add(data): the model was fitted with class_weight; extend it with"
                " ImprintClassifier.partial_fit."
            )
        if rows.tags is not None and not head.tags:
            raise ParameterError(
                "add(data): the data have tags, and the model has one label per input;"
                " fit it again."
            )
        if len(imprinted):
            check_width(rows.X, imprinted.width)
            check_blocks(rows.blocks, imprinted.method.blocks)
            check_kinds("add(data): the data have", rows.labels, head.labels)
        if rows.tags is None and head.tags:
            rows = rows._replace(y=single_labels(np.asarray(rows.y).tolist()))
        rows = _with_positive_weights(rows)
        if max_rows is not None:
            return self._with_newest(rows, max_rows)
        head = head.learn(
            rows.X.astype(imprinted.dtype, copy=False), np.asarray(rows.y), rows.weight
        )
        return self._replace(
            head=head, exemplars=choose_exemplars(head.imprinted, self.exemplars, rows)
        )

    def _with_newest(self, rows: Embedded, max_rows: int) -> Self:
        """The state after more rows, with the newest of each class that gets some."""
        if not isinstance(self.head, Head):
            owner = "tags" if self.head.tags else "models that keep a network's classes"
            raise ParameterError(f"max_rows: {owner} have no such limit; leave it out.")
        chosen = newest_rows(np.asarray(rows.y), max_rows)
        newest = _rows_at(rows, chosen)
        X = newest.X.astype(self.head.dtype, copy=False)
        y = np.asarray(newest.y)
        head = self.head.learn_newest(X, y, newest.weight, max_rows)
        stored = dict(self.exemplars)
        moved: dict[Any, Exemplars] = {}
        for label in rows.labels:
            earlier = stored.pop(label, None)
            if earlier is not None:
                X = earlier.X.astype(head.dtype, copy=False)
                moved[label] = earlier.only(remaining(head, label, X))
        names = [name for one in moved.values() for name in one.names]
        labels = [label for label, one in moved.items() for _ in one.names]
        candidates = newest._replace(
            X=np.concatenate([*(one.X for one in moved.values()), newest.X]),
            names=[*names, *newest.names],
            y=as_labels([*labels, *y.tolist()]),
        )
        return self._replace(
            head=head, exemplars=choose_exemplars(head, stored, candidates)
        )

    def count_known(self, rows: Embedded) -> int:
        """How many rows are copies of a row that their class already has; 0 if the
        model is not calibrated.
        """
        head = self.head.imprinted
        if head.folds is None:
            return 0
        return int(
            head.folds.count_known(
                rows.X.astype(head.dtype, copy=False), np.asarray(rows.y)
            )
        )

    def without(self, label: Any) -> Self:
        """The state without a class, or without the classes below a node of the
        tree.
        """
        if self.class_weight == "balanced":
            raise ParameterError(
                f"forget({label!r}) with class_weight='balanced': the balance depends"
                " on all classes; fit the model again."
            )
        head = self.head.without(label)
        if not head.tags:
            return self._with_classes_of(head, self.exemplars, {})
        return self._with_label_sets(
            head, lambda label_set: without_label(label_set, label)
        )

    def without_rows(self, X: Array, labels: Sequence[Any] | None) -> Self:
        """The state without some training inputs, perhaps only in their classes."""
        if self.class_weight is not None:
            raise ParameterError(
                "forget_rows: the model was fitted with class_weight; fit it again."
            )
        imprinted = self.head.imprinted
        rows = X.astype(imprinted.dtype, copy=False)
        head = self.head.forget_rows(rows, labels)
        before = dict(zip(imprinted.labels, imprinted.states))
        after = dict(zip(head.imprinted.labels, head.imprinted.states))
        unchanged: ExemplarsByClass = {}
        changed: dict[Any, list[Exemplars]] = {}
        for label, exemplars in self.exemplars.items():
            if after.get(label) is before[label]:
                unchanged[label] = exemplars
                continue
            gone = matching_rows(exemplars.X.astype(imprinted.dtype), rows).stored
            if not gone.all():
                changed[label] = [exemplars.only(~gone)]
        return self._with_classes_of(head, unchanged, changed)

    def split(self, labels: Sequence[Any]) -> Self:
        """The state with only some classes; see `Decider.split`."""
        if self.class_weight == "balanced":
            raise ParameterError(
                "split(classes) with class_weight='balanced': the balance depends on"
                " all classes; fit the model again."
            )
        head = self.head.split(labels)
        if not head.tags:
            return self._with_classes_of(head, self.exemplars, {})
        others = [label for label in self.head.labels if label not in head]

        def rest(label_set: str) -> str | None:
            remaining: str | None = label_set
            for label in others:
                if remaining is not None:
                    remaining = without_label(remaining, label)
            return remaining

        return self._with_label_sets(head, rest)

    def renamed(self, old: Any, new: Any) -> Self:
        """The state with another name for a class or a tag."""
        head = self.head.rename(old, new)
        exemplars: ExemplarsByClass = {}
        for label, of_class in self.exemplars.items():
            if head.tags:
                key = renamed_set(label, old, new, self.head.labels)
            else:
                key = new if label == old else label
            exemplars[key] = of_class
        class_weight = self.class_weight
        if isinstance(class_weight, dict):
            class_weight = renamed_key(class_weight, old, new)
        return self._replace(head=head, exemplars=exemplars, class_weight=class_weight)

    def _with_label_sets(
        self, head: Decider, rest_of: Callable[[str], str | None]
    ) -> Self:
        """The state with a head of fewer tags. Exemplars of a label set move to the set
        that remains of it; None if none does.
        """
        stored: ExemplarsByClass = {}
        moved: dict[str, list[Exemplars]] = {}
        for label_set, exemplars in self.exemplars.items():
            rest = rest_of(label_set)
            if rest == label_set:
                stored[label_set] = exemplars
            elif rest is not None:
                moved.setdefault(rest, []).append(exemplars)
        return self._with_classes_of(head, stored, moved)

    def _with_classes_of(
        self,
        head: Decider,
        stored: ExemplarsByClass,
        moved: Mapping[Any, Sequence[Exemplars]],
    ) -> Self:
        """The state with another head, whose exemplars are chosen among the stored and
        the moved ones.
        """
        width = head.imprinted.width or 0
        X = [np.empty((0, width), np.float32)]
        names: list[str] = []
        labels: list[Any] = []
        for label, parts in moved.items():
            for exemplars in parts:
                X.append(exemplars.X)
                names += exemplars.names
                labels += [label] * len(exemplars.names)
        rows = Embedded(np.concatenate(X), names, (), as_labels(labels))
        return self._replace(
            head=head, exemplars=choose_exemplars(head.imprinted, stored, rows)
        )

    def merged_with(
        self, others: Sequence["ImprinterState"], names: Sequence[str]
    ) -> tuple["ImprinterState", Merged]:
        """One state from several with equal settings, and what its user should know."""
        for other, name in zip(others, names[1:]):
            if other.named != self.named:
                with_names, without = (
                    (name, names[0]) if other.named else (names[0], name)
                )
                raise ParameterError(
                    f"merge: {with_names} has class names as examples and {without} has"
                    " not; fit both with names=True or both with names=False."
                )
            if other.class_weight != self.class_weight:
                raise ParameterError(
                    f"merge: {name} and {names[0]} have different class weights; fit"
                    " both with the same."
                )
        states = [self, *others]
        if self.class_weight == "balanced":
            raise ParameterError(
                "merge with class_weight='balanced': the balance depends on all"
                " classes; fit one model."
            )
        merged = merge([state.head for state in states], names)
        first: ExemplarsByClass = {}
        moved: dict[Any, list[Exemplars]] = {}
        for state in states:
            for label, exemplars in state.exemplars.items():
                if label in first:
                    moved.setdefault(label, []).append(exemplars)
                else:
                    first[label] = exemplars
        return self._with_classes_of(merged.head, first, moved), merged

    def shared(self) -> Self:
        """The state without training rows and without exemplars."""
        return self._replace(head=self.head.without_rows(), exemplars={})

    def card(self, embedder: BackboneEmbedder) -> ModelCard:
        """The model card."""
        origin = embedder.origin() if embedder.kind.needs_backbone else None
        return model_card(self.head, embedder.kind.name, origin, self.named)

    def to_parts(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """A JSON document and named arrays. Pre-trained classes are stored by name,
        without those forgotten.
        """
        head, imprinted = self.head, self.head.imprinted
        document, arrays = head_to_parts(
            head if isinstance(head, TagHead) else imprinted
        )
        if isinstance(head, PretrainedHead):
            labels = list(head.pretrained.labels)
            document["kept"] = {
                "way": head.strategy,
                "classes": labels,
                "digest": _digest(head.pretrained),
            }
        document |= {
            "images": [[] for _ in range(len(imprinted))],
            "names": self.named,
        }
        if self.class_weight is not None:
            document["class_weight"] = stored_class_weight(self.class_weight)
        for i, label in enumerate(imprinted.classes.tolist()):
            if exemplars := self.exemplars.get(label):
                document["images"][i] = list(exemplars.names)
                rows = _held_rows(imprinted, label)
                index = find_rows(exemplars.X, rows.astype(exemplars.X.dtype))
                # rows that cross-validation holds are stored once
                stored = {"X": exemplars.X} if index is None else {"index": index}
                stored["beside"] = exemplars.nearest
                arrays |= {f"{IMAGES}{i}.{key}": stored[key] for key in stored}
        return document, arrays

    @classmethod
    def from_parts(
        cls,
        document: dict[str, Any],
        arrays: dict[str, Array],
        source: str | os.PathLike[str],
    ) -> Self:
        """The state from the parts of `to_parts` or of an `ImprintClassifier`; raises
        `FileError` for anything else.
        """
        head: Decider = head_from_parts(document, arrays, source)
        with reading(source):
            if "kept" in document:
                require(isinstance(head, Head))
                head = _with_pretrained(
                    head.imprinted,
                    document["kept"],
                    str(document["backbone"]["spec"]),
                    source,
                )
            names = document.get("images", [[]] * len(head.imprinted))
            return cls(
                head,
                _read_exemplars(head.imprinted, names, arrays),
                document.get("names") is True,
                read_class_weight(document.get("class_weight"), source),
            )


def _with_positive_weights(rows: Embedded) -> Embedded:
    """The rows without those of weight 0; equal weights of 1 are as none."""
    weight = rows.weight
    if weight is None:
        return rows
    positive = np.flatnonzero(weight)
    weight = weight[positive]
    rows = _rows_at(rows, positive)
    return rows._replace(weight=None if (weight == 1).all() else weight)


def _rows_at(rows: Embedded, chosen: Array) -> Embedded:
    """Some of the rows, by their indices."""
    return rows._replace(
        X=rows.X[chosen],
        names=[rows.names[i] for i in chosen.tolist()],
        y=np.asarray(rows.y)[chosen],
        weight=None if rows.weight is None else rows.weight[chosen],
    )


def method_parts(
    strategy: str,
    spec: str,
    recipe: str | None,
    parts: Mapping[str, Any],
    calibrate: bool,
) -> dict[str, str]:
    """The parts of the method for `Imprinter(keep_head=strategy)`, of which `parts`
    replace some.

    Options that the strategy does not allow, and a backbone without pre-trained
    classes, are refused.
    """
    call = f"Imprinter(keep_head={strategy!r})"
    if strategy not in STRATEGIES:
        raise unknown("way to keep the head", strategy, STRATEGIES)
    if spec == NO_BACKBONE:
        raise ParameterError(
            f"{call}: embeddings come without a network, so there is no head to keep."
        )
    backbones.head(spec)
    if strategy in STRATEGY_RECIPES:
        unsupported = (
            ["recipe"]
            if recipe is not None
            else [name for name in parts if name != "generator"]
        )
        if unsupported:
            raise ParameterError(
                f"{call}: this strategy is a complete method; it takes no"
                f" {unsupported[0]}."
            )
    elif not calibrate:
        raise ParameterError(
            f"{call}: the margin is computed from held-out images; it needs"
            " calibrate=True."
        )
    method = recipes.describe(
        STRATEGY_RECIPES.get(strategy, recipe or "kernel")
    ).parts()
    if strategy == "done":
        method["norm_post"] = "none"
    if (
        strategy != "qi"
        and not generators.family.resolve(
            parts.get("generator", method["generator"])
        ).points
    ):
        raise ParameterError(
            f"{call}: new classes need proxies that are points, not directions."
        )
    return method


def _with_pretrained(
    new: Head, stored: dict[str, Any], spec: str, source: str | os.PathLike[str]
) -> PretrainedHead:
    """The head of new classes next to the stored pre-trained classes of a backbone."""
    strategy, labels = stored["way"], stored["classes"]
    all_classes = PretrainedClasses.of(backbones.head(spec))
    classes = all_classes.without({*all_classes.labels} - {*map(str, labels)})
    require(
        strategy in STRATEGIES
        and labels
        and list(classes.labels) == labels
        and not {*labels} & {*new.labels}
    )
    require(strategy != "margin" or new.folds is not None)
    if _digest(classes) != stored["digest"]:
        raise FileError(
            f"{source} was fitted next to another head of {spec} than the one here: fit"
            " the model again."
        )
    return PretrainedHead(str(strategy), classes, new)


def _digest(classes: PretrainedClasses) -> str:
    return digest([classes.weights, classes.bias, *classes.labels])


def _held_rows(head: Head, label: Any) -> Array:
    """The rows of a class that cross-validation holds; none if it holds no rows."""
    if head.folds is None or not head.folds.has_rows:
        return np.empty((0, head.width or 0), head.dtype)
    rows: Array = head.folds.held[label].rows
    return rows


def _read_exemplars(
    head: Head, names: list[list[str]], arrays: dict[str, Array]
) -> ExemplarsByClass:
    by_class = {}
    proxies, width = head.proxies_per_class, head.width
    for i, (label, class_names) in enumerate(
        zip(head.classes.tolist(), names, strict=True)
    ):
        if not class_names:
            continue
        nearest = arrays[f"{IMAGES}{i}.beside"]
        index = arrays.get(f"{IMAGES}{i}.index")
        if index is not None:
            # the rows themselves were checked with the cross-validation
            rows = _held_rows(head, label)
            require(index.shape == (len(class_names),) and index.dtype.kind == "i")
            require(((index >= 0) & (index < len(rows))).all())
        else:
            rows = arrays[f"{IMAGES}{i}.X"]
            require(rows.shape == (len(class_names), width) and rows.dtype.kind == "f")
            require(np.isfinite(rows).all())
        require(nearest.shape == (proxies[i],) and nearest.dtype.kind == "i")
        require(((nearest >= 0) & (nearest < len(class_names))).all())
        stored = tuple(map(str, class_names))
        by_class[label] = Exemplars(stored, rows, nearest, index)
    require(2 * len(by_class) == sum(name.startswith(IMAGES) for name in arrays))
    return by_class


def choose_exemplars(
    head: Head, stored: ExemplarsByClass, new: Embedded
) -> ExemplarsByClass:
    """The exemplars of every class, chosen among the stored ones and the new inputs.

    A class without new inputs keeps its exemplars if its proxies depend on its rows
    only.
    """
    rows_of = rows_by_class(np.asarray(new.y))
    weights = np.split(head.proxies.weights, head.proxies.starts[1:])
    chosen = {}
    for label, weights_of_class in zip(head.classes.tolist(), weights):
        old, rows = stored.get(label), rows_of.get(label, np.empty(0, dtype=np.intp))
        if old and not len(rows) and head.method.per_class:
            chosen[label] = old
        elif old or len(rows):
            X = np.concatenate([*([old.X] if old else []), np.asarray(new.X[rows])])
            names = [
                *(old.names if old else ()),
                *(new.names[i] for i in rows.tolist()),
            ]
            inputs = head.norm_inf.apply(X)
            starts = range(0, len(weights_of_class), PROXY_BLOCK)
            closest = np.concatenate(
                [
                    _closest(head, weights_of_class[i : i + PROXY_BLOCK], inputs)
                    for i in starts
                ]
            )
            if head.folds is not None and head.folds.keep_rows:
                # any of them may be the nearest after another one is forgotten
                chosen[label] = Exemplars(tuple(names), X, closest)
                continue
            used, nearest_used = np.unique(closest, return_inverse=True)
            chosen[label] = Exemplars(
                tuple(names[i] for i in used), X[used], nearest_used
            )
    return chosen


def _closest(head: Head, weights: Array, inputs: Array) -> Array:
    """The input nearest to each proxy; for similarities, the one with the largest inner
    product.
    """
    if (
        not head.method.generator.points
        or head.method.aggregator.measure == "similarity"
    ):
        return np.asarray(np.argmax(weights @ inputs.T, axis=1))
    if len(weights) * len(inputs) > MAX_COMPARED_PAIRS:
        return nearest(weights, inputs.astype(weights.dtype), 1)[1][:, 0]
    W, X = weights.astype(np.float64), inputs.astype(np.float64)
    return np.asarray(np.argmin(squared_norms(X) - 2 * W @ X.T, axis=1))


def reasons(
    head: Decider, exemplars: ExemplarsByClass, x: Array, n: int
) -> list[Reason]:
    """The `n` proxies that contribute most to the prediction for a row x (d,); positive
    weights come first.
    """
    proxies, measure = head.proxies, head.aggregator.measure
    values = head.evidence(x.astype(proxies.weights.dtype))
    strength = (
        -values
        if measure == "distance"
        else values
        if measure == "similarity"
        else np.abs(values)
    )
    against = (values <= 0) & (measure == "weight")
    owners, starts, strongest = head.owners, proxies.starts, []
    for i in np.lexsort((-strength, against))[:n].tolist():
        c = proxies.labels[i]
        label = owners[c].item()
        stored = exemplars.get(label)
        name = stored.names[stored.nearest[i - starts[c]]] if stored else None
        strongest.append(Reason(label, float(values[i]), name))
    return strongest
