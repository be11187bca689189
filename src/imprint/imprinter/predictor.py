"""Predictions, explanations and the properties of a fitted `Imprinter`."""

from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from imprint.active import Suggestions, suggest
from imprint.backbones import Backbone
from imprint.calibration.estimates import warn_of_small_samples
from imprint.core.arrays import Array
from imprint.core.errors import (
    NotFittedError,
    ParameterError,
    UnreadableInput,
    check_int,
    first_names,
    printable,
)
from imprint.core.label_sets import as_text
from imprint.core.tree import LabelTree, Node
from imprint.explanation import Explanation, explain
from imprint.head import Decider
from imprint.head.card import ModelCard
from imprint.imprinter.embedder import BackboneEmbedder, Report
from imprint.imprinter.items import Embedded, PythonInputs
from imprint.imprinter.state import Guess, ImprinterState, Reason, reasons
from imprint.modalities.embedding import check_width
from imprint.pretrained_classes import PretrainedHead
from imprint.tags import TagHead

if TYPE_CHECKING:
    from imprint.classifier import ImprintClassifier

MAX_SHOWN_CLASSES = 20  # in a notebook


class Predictor:
    """An embedder and a fitted state, and the methods that change neither."""

    embedder: BackboneEmbedder
    _state: ImprinterState | None = None

    @property
    def state(self) -> ImprinterState:
        """The fitted state, an immutable value."""
        if self._state is None:
            raise NotFittedError(
                "This Imprinter has no classes yet: call fit(folder) or load(file)"
                " first."
            )
        return self._state

    @property
    def fitted(self) -> bool:
        """Whether the model has classes."""
        return self._state is not None

    def _repr_html_(self) -> str:
        """A table for notebooks: the backbone, the method, the classes and the expected
        accuracy.
        """
        facts = {"backbone": self.embedder.spec or "the default for the data"}
        if self.fitted:
            facts["method"] = str(self.state.head.imprinted.method)
            labels = [printable(label, 40) for label in self.classes_.tolist()]
            facts["classes"] = first_names(labels, MAX_SHOWN_CLASSES)
        if self.fitted and self.calibrated and np.isfinite(self.expected_accuracy_):
            low, high = self.expected_interval_
            facts["expected accuracy"] = (
                f"{100 * self.expected_accuracy_:.1f} %"
                f" ({100 * low:.1f}-{100 * high:.1f} %), extrapolated from"
                " cross-validation"
            )
        rows = "".join(
            f"<tr><th>{escape(k)}</th><td>{escape(v)}</td></tr>"
            for k, v in facts.items()
        )
        return f"<table><caption>Imprinter</caption>{rows}</table>"

    @property
    def backbone(self) -> Backbone:
        """The loaded backbone; a model of embeddings has none."""
        return self.embedder.backbone

    @property
    def modality(self) -> str:
        """What the model reads: `image`, `text`, `sound`, `embedding`, or the modality
        of a plug-in.
        """
        return self.embedder.kind.name

    @property
    def classes_(self) -> Array:
        """The labels, sorted."""
        return self.state.head.classes

    def card(self) -> ModelCard:
        """The model card: data, classes, expected accuracy, backbone and licence; see
        `imprint card`.
        """
        return self.state.card(self.embedder)

    @property
    def calibrated(self) -> bool:
        """Whether the model is calibrated."""
        return self.state.head.calibrated

    @property
    def expected_accuracy_(self) -> float:
        """The accuracy to expect, extrapolated from cross-validation; see
        `ImprintClassifier`.
        """
        return self.state.head.calibration.expected_accuracy

    @property
    def expected_interval_(self) -> tuple[float, float]:
        """The 95 % interval of the expected accuracy."""
        return self.state.head.calibration.expected_interval

    @property
    def measure(self) -> str:
        """The meaning of the values of `why`: a `similarity` (more is nearer), a
        `distance` (less is nearer), or a `weight` (the contribution of a proxy to the
        score of the predicted class).
        """
        return self.state.head.aggregator.measure

    @property
    def classifier(self) -> "ImprintClassifier":
        """The classifier of embeddings, as an `ImprintClassifier`; later changes of the
        model do not affect it.
        """
        from imprint.classifier import ImprintClassifier

        head, class_weight = self.state.head, self.state.class_weight
        if isinstance(head, PretrainedHead):
            raise ParameterError(
                "Imprinter.classifier: with keep_head the network's classes decide too;"
                " use predict."
            )
        classifier = ImprintClassifier.of_head(
            head if isinstance(head, TagHead) else head.imprinted
        )
        return classifier.set_params(class_weight=class_weight)

    def look(self, items: Any, progress: Report | None = None) -> Embedded:
        """Inputs as embeddings, which `predict` and related methods also accept; see
        `embed` for the types of inputs.

        Inputs that cannot be read have no row and are listed in `skipped`. `predict`
        refuses them.
        """
        rows = self.embedder.embed_unlabelled(items, progress)
        if self.fitted and len(rows.X):
            head = self.state.head
            width = head.imprinted.width or head.proxies.weights.shape[1]
            check_width(rows.X, width)
        return rows

    @property
    def tree(self) -> LabelTree:
        """The classes as the leaves of a tree: `animal/cat` is below `animal`. Without
        nested folders or `tree=True`, it has one level.
        """
        return self.state.head.tree()

    def predict(self, items: Any, level: int | None = None) -> Array:
        """The label of every input; with `level`, its most probable node at that level
        of the tree.

        A model of tags returns an indicator matrix whose columns are `classes_`.
        """
        return np.asarray(self.state.head.predict(self._rows(items), level))

    def predict_proba(self, items: Any, level: int | None = None) -> Array:
        """The probabilities of every input, in the order of `classes_`.  # (n, C)

        With `level`, those of the nodes at that level of the tree, in the order of
        `tree.level(level)`.
        """
        return self.state.head.class_probabilities(self._rows(items), level)[1]

    def top(
        self, items: Any, n: int = 3, level: int | None = None
    ) -> list[list[Guess]]:
        """The `n` most probable classes of every input, or nodes at a level, the most
        probable first.
        """
        check_int("top", "n", n)
        labels, P = self.state.head.class_probabilities(self._rows(items), level)
        order = np.argsort(-P, axis=1, kind="stable")[:, :n]
        return [
            [Guess(labels[c], float(p[c])) for c in row] for p, row in zip(P, order)
        ]

    def tags(self, items: Any) -> list[list[Guess]]:
        """The labels that a model of tags predicts for every input, in the order of
        `classes_`.
        """
        head = self.state.head
        if not head.tags:
            raise ParameterError(
                "tags(items): the model has one label per input; use predict or top."
            )
        rows = self._rows(items)
        labels, P = head.class_probabilities(rows)
        columns = map(np.flatnonzero, head.predict(rows))
        return [
            [Guess(labels[c], float(p[c])) for c in present]
            for p, present in zip(P, columns)
        ]

    def likely_nodes(
        self, items: Any, unknown: float = 0.05, level: int | None = None
    ) -> list[Node | None]:
        """For every input whose p-value `known` is below `unknown`, the deepest node of
        the tree that is still likely.

        It has two classes or more and a probability of at least 0.8, and the p-value is
        at least a fifth of `unknown`. None for other inputs.
        """
        head, rows = self.state.head, self._rows(items)
        return head.tree().instead(
            head.class_probabilities(rows)[1], head.known(rows), unknown, level
        )

    def known(self, items: Any) -> Array:
        """The conformal p-value that each input belongs to one of the classes, in (0,
        1].  # (n,)

        A threshold of 0.05 refuses about 5 % of the inputs that do belong (measured:
        4 to 6 % of inputs like the training data, 1 to 19 % of others).
        """
        head = self.state.head
        if not isinstance(items, Embedded):
            warn_of_small_samples(
                head.imprinted.folds, self.embedder.kind.plural, known_only=True
            )
        return head.known(self._rows(items))

    def suggest(self, items: Any, n: int = 10) -> Suggestions:
        """Indices of the unlabelled items, the most useful to label first, with
        `reasons`; see `imprint.active`.

        Items that cannot be read are listed in `unreadable`.
        """
        pool = self.look(items)
        rows = suggest(pool.X, n, head=self.state.head)
        return (
            rows
            if isinstance(items, Embedded)
            else Suggestions.of(pool.readable[rows], rows.reasons, pool.skipped)
        )

    def why(self, item: Any, n: int = 5) -> list[Reason]:
        """The `n` proxies that contribute most to the prediction for an input; see
        `measure`.
        """
        check_int("why", "n", n)
        state, rows = (
            self.state,
            self._rows(item if isinstance(item, Embedded) else [item]),
        )
        if len(rows) != 1:
            raise ParameterError(
                f"why(item): {len(rows)} items; explain one at a time."
            )
        return reasons(state.head, state.exemplars, rows[0], n)

    def explain(
        self, item: Any, *, label: Any = None, against: Any = None
    ) -> Explanation:
        """What each part of an input adds to the score of the predicted class minus
        that of the second; `label` and `against` name other classes.

        The places of an image, the words of a text, the times of a sound or a series.
        For images and networks in ONNX files it is a closed form; other inputs are
        classified without each part in turn.
        """
        kind = self.embedder.kind
        if not kind.needs_backbone:
            raise ParameterError(
                "explain(item): this model reads embeddings, which have no parts."
            )
        read = PythonInputs(kind, [item])[0]
        return self.explain_read(read, label=label, against=against)

    def explain_read(self, item: Any, **options: Any) -> Explanation:
        """`explain` for an input that its modality has read, such as one of a `Split`;
        the options are those of `imprint.explanation.explain`.
        """
        return explain(self.state.head, self.backbone, item, **options)

    def _rows(self, items: Any) -> Array:
        rows = self.look(items)
        if rows.skipped and not isinstance(items, Embedded):
            raise UnreadableInput(rows.skipped[0].name, rows.skipped[0].reason)
        if not len(rows.X):
            raise ParameterError("predict(items): there are no items.")
        return rows.X


def predictions(
    head: Decider,
    rows: Embedded,
    *,
    top: int = 3,
    unknown: float | None = None,
    level: int | None = None,
    with_doubt: bool = False,
) -> list[dict[str, Any]]:
    """The answer of `imprint predict --json`, the page and its API for each row, in
    JSON types.

    The p-value `known` is None if the model is not calibrated. `label` is None if
    `known` is below `unknown`; in a tree, `node` is then the deepest node that is still
    likely. With `level`, the answers are nodes at that level. For tags, `labels` lists
    the predicted labels, the most probable first. `with_doubt` adds `doubt`, which may
    be None.
    """
    Q = rows.X.astype(head.imprinted.dtype, copy=False)
    if with_doubt or head.calibrated:
        S, doubt = head.scores_and_doubt(Q)
    else:
        S, doubt = head.scores(Q), None
    P = head.probabilities(S)
    tree = head.tree()
    known, nodes = list[float | None]([None] * len(Q)), None
    if head.calibrated or unknown is not None:
        p_values = head.calibration.p_values(S, doubt)
        known = p_values.tolist()
        if unknown is not None and tree.grouped_levels:
            nodes = [
                node and node._asdict()
                for node in tree.instead(P, p_values, unknown, level)
            ]
    labels, P = (head.classes.tolist(), P) if level is None else tree.at(P, level)
    order = np.argsort(-P, axis=1, kind="stable")
    has_label = head.predict(Q) if head.tags else None
    answers = []
    for i, (path, p_value) in enumerate(zip(rows.names, known)):
        guesses = [
            {"label": labels[c], "probability": float(P[i, c])}
            for c in order[i, :top].tolist()
        ]
        rejected = unknown is not None and p_value is not None and p_value < unknown
        answer = {"path": path, "label": None if rejected else guesses[0]["label"]}
        answer |= {
            "probability": guesses[0]["probability"],
            "known": p_value,
            "top": guesses,
        }
        if has_label is not None:
            columns = (
                [] if rejected else [c for c in order[i].tolist() if has_label[i, c]]
            )
            answer["labels"] = [
                {"label": labels[c], "probability": float(P[i, c])} for c in columns
            ]
            answer["label"] = None if rejected else as_text(labels[c] for c in columns)
        if with_doubt:
            answer["doubt"] = None if doubt is None else float(doubt[i])
        if nodes is not None:
            answer["node"] = nodes[i]
        answers.append(answer)
    return answers
