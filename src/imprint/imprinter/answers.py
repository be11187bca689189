"""What a model of pictures, texts or embeddings says of itself and of new inputs."""

from abc import ABC, abstractmethod
from html import escape
from typing import Any, NamedTuple

import numpy as np

from imprint.active import Suggestions, suggest
from imprint.calibration.caveats import warn_of_small_samples
from imprint.core.errors import ParameterError, UnreadableInput
from imprint.core.printable import printable
from imprint.core.types import Array
from imprint.head.card import ModelCard, model_card
from imprint.imprinter import exemplars
from imprint.imprinter.embedder import BackboneEmbedder, Report
from imprint.imprinter.exemplars import Reason
from imprint.imprinter.items import Embedded
from imprint.imprinter.state import ImprinterState
from imprint.modalities.embedding import check_width

SHOWN_CLASSES = 20  # in a notebook


class Guess(NamedTuple):
    """A class and the probability the model gives it."""

    label: Any
    probability: float


class Answering(ABC):
    """Answers that need a network and something learnt, each read once."""

    embedder: BackboneEmbedder

    @property
    @abstractmethod
    def learnt(self) -> ImprinterState:
        """What the model knows now, as one immutable value."""

    @property
    @abstractmethod
    def fitted(self) -> bool:
        """Whether the model has classes."""

    def _repr_html_(self) -> str:
        """A table for notebooks: the backbone, the method, the classes and the expected accuracy."""
        facts = {"backbone": self.embedder.spec or "the default for the data"}
        if self.fitted:
            labels = [printable(label, 40) for label in self.classes_.tolist()]
            more = f" and {len(labels) - SHOWN_CLASSES:,} more" if len(labels) > SHOWN_CLASSES else ""
            facts["method"] = str(self.learnt.head.imprinted.method)
            facts["classes"] = ", ".join(labels[:SHOWN_CLASSES]) + more
        if self.fitted and self.calibrated and np.isfinite(self.expected_accuracy_):
            low, high = self.expected_interval_
            facts["expected accuracy"] = f"{100 * self.expected_accuracy_:.1f} % ({100 * low:.1f}-{100 * high:.1f} %)"
        rows = "".join(f"<tr><th>{escape(k)}</th><td>{escape(v)}</td></tr>" for k, v in facts.items())
        return f"<table><caption>Imprinter</caption>{rows}</table>"

    @property
    def modality(self) -> str:
        """What the model reads: `image`, `text`, `sound`, `embedding`, or the modality of a plug-in."""
        return self.embedder.modality

    @property
    def classes_(self) -> Array:
        """The labels the model knows, sorted."""
        return self.learnt.head.classes

    def card(self) -> ModelCard:
        """The model card: data, classes, expected accuracy, backbone and licence; see `imprint card`."""
        kind, learnt = self.embedder.kind, self.learnt
        origin = self.embedder.origin() if kind.needs_backbone else None
        return model_card(learnt.head, kind.name, origin, learnt.named)

    @property
    def calibrated(self) -> bool:
        """Whether the model knows how good it is."""
        return self.learnt.head.calibrated

    @property
    def expected_accuracy_(self) -> float:
        """The share of new inputs that will be called right; see `ImprintClassifier`."""
        return self.learnt.head.calibration.expected_accuracy

    @property
    def expected_interval_(self) -> tuple[float, float]:
        """Where the expected accuracy lies with 95 % confidence."""
        return self.learnt.head.calibration.expected_interval

    @property
    def measure(self) -> str:
        """What the values of `why` are: a `similarity` (more is nearer), a `distance` (less is nearer), or a `weight`
        (how much a proxy adds to the score of the class that won)."""
        return self.learnt.head.measure

    def look(self, items: Any, progress: Report | None = None) -> Embedded:
        """Pictures (paths, or uint8 arrays) or texts as embeddings, which `predict` and its kin take as well.

        What cannot be read is listed in `skipped` and has no row; `predict` refuses it instead.
        """
        rows = self.embedder.unlabelled(items, progress)
        if self.fitted and len(rows.X):
            check_width(rows.X, self.learnt.head.proxies.weights.shape[1])
        return rows

    def predict(self, items: Any) -> Array:
        """The label of every picture."""
        head = self.learnt.head
        return np.asarray(head.classes[head.winners(self._rows(items))])

    def predict_proba(self, items: Any) -> Array:
        """The probabilities of every picture, in the order of `classes_`.  # (n, C)"""
        head = self.learnt.head
        return head.probabilities(head.scores(self._rows(items)))

    def top(self, items: Any, n: int = 3) -> list[list[Guess]]:
        """For every picture the `n` most probable classes, best first; the first is what `predict` says."""
        head = self.learnt.head
        P, labels = head.probabilities(head.scores(self._rows(items))), head.classes.tolist()
        order = np.argsort(-P, axis=1, kind="stable")[:, :n]
        return [[Guess(labels[c], float(p[c])) for c in row] for p, row in zip(P, order)]

    def known(self, items: Any) -> Array:
        """For every picture the p-value that it belongs to a class the model knows, in (0, 1].  # (n,)

        Refusing what is below 0.05 refuses at most about 5 % of what does belong.
        """
        head = self.learnt.head
        if not isinstance(items, Embedded):
            warn_of_small_samples(head.imprinted.folds, self.embedder.kind.plural, of_known=True)
        return head.known(self._rows(items))

    def suggest(self, items: Any, n: int = 10) -> Suggestions:
        """Numbers of the unlabelled items, most useful to label first, with `reasons`; see `imprint.active`.

        Items that cannot be read are listed in `unreadable`.
        """
        pool = self.look(items)
        suggestions = suggest(pool.X, n, head=self.learnt.head)
        return suggestions if isinstance(items, Embedded) else suggestions.among(len(pool.X), pool.skipped)

    def why(self, item: Any, n: int = 5) -> list[Reason]:
        """The `n` proxies that count most for one picture (a path, a uint8 array or its embedding); see `measure`."""
        rows = self._rows(item if isinstance(item, Embedded) else [item])
        if len(rows) != 1:
            raise ParameterError(f"why(item): {len(rows)} items; explain one at a time.")
        return exemplars.reasons(self.learnt.head, self.learnt.shelves, rows[0], n)

    def _rows(self, items: Any) -> Array:
        rows = self.look(items)
        if rows.skipped and not isinstance(items, Embedded):
            raise UnreadableInput(rows.skipped[0].name, rows.skipped[0].reason)
        if not len(rows.X):
            raise ParameterError("predict(items): there are no items.")
        return rows.X
