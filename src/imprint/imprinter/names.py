"""Class names as examples: the embedded name of a class serves as one more row of the class."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from imprint.backbones import Backbone
from imprint.core.errors import ParameterError
from imprint.core.label_sets import single_labels
from imprint.head import Head
from imprint.imprinter.embedder import BackboneEmbedder
from imprint.imprinter.items import Embedded
from imprint.tags import TagHead

CRITICAL = 2.0  # standard deviations by which the mean rank of the names must be better than chance: one-sided, 2.3 %
TITLE = "the class name"  # the caption of the row of a class name, followed by its words


def words_of(label: object) -> str:
    """The words of a label: underscores, hyphens and camel case become spaces.

    >>> words_of("card_arrival"), words_of("CardArrival"), words_of("HTTPError"), words_of("lost-card2")
    ('card arrival', 'card arrival', 'HTTP error', 'lost card2')
    """
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", re.sub(r"[_\-./]+", " ", str(label)))
    parts = [word if word.isupper() and len(word) > 1 else word.lower() for word in spaced.split()]
    return " ".join(parts) or str(label)


@dataclass(frozen=True)
class ClassNames:
    """Which class names serve as examples.

    `use` is True (all), False (none), or None: all names of a text model, if they agree with the examples. `wording`
    replaces the words of some labels.
    """

    use: bool | None
    wording: Mapping[str, str]

    @classmethod
    def of(cls, given: Any) -> "ClassNames":
        """The value of `Imprinter(names=given)`."""
        if given is None or isinstance(given, bool):
            return cls(given, {})
        if isinstance(given, Mapping) and all(isinstance(text, str) and text.strip() for text in given.values()):
            return cls(True, {str(label): text for label, text in given.items()})
        raise ParameterError("Imprinter(names=...): names must be True, False, None, or a dict from label to wording.")

    def rows(self, labels: Sequence[Any], backbone: Backbone) -> Embedded:
        """One row for each label: the embedding of its words."""
        texts = [self.wording.get(str(label), words_of(label)) for label in labels]
        titles = [f"{TITLE}, {text!r}" for text in texts]
        return Embedded(backbone.embed_names(texts), titles, (), np.array(list(labels)))

    def examples(self, embedder: BackboneEmbedder, rows: Embedded, empty: Head | TagHead) -> Embedded | None:
        """One row for each class of some examples; None if the names do not serve as examples.

        By default they do if they agree with the examples: a model of the examples alone, fitted from the `empty` head,
        ranks all classes for each name. For names without meaning, the rank of the right class is uniform, so the mean
        of C ranks, scaled to 0..1, has the mean 1/2 and the variance 1 / (12 C).
        """
        if self.use is False or (self.use is None and not embedder.kind.typed):
            return None
        names = self.rows(rows.labels, embedder.backbone)
        if self.use or len(names.X) < 2:
            return names if self.use else None
        head = empty.learn(rows.X, np.asarray(rows.y))
        scores = np.asarray(head.scores(names.X.astype(rows.X.dtype, copy=False)))
        scores = scores[:, np.searchsorted(head.classes, np.asarray(names.y))]
        ranks = (scores > np.diagonal(scores)[:, None]).sum(axis=1) / (len(head) - 1)
        return names if ranks.mean() < 0.5 - CRITICAL / np.sqrt(12 * len(ranks)) else None


def joined(rows: Embedded, names: Embedded) -> Embedded:
    """The examples followed by the names."""
    of_names = np.asarray(names.y) if rows.tags is None else single_labels(names.labels)
    X = np.concatenate([rows.X, names.X.astype(rows.X.dtype, copy=False)])
    y = np.concatenate([np.asarray(rows.y), of_names])
    return Embedded(X, [*rows.names, *names.names], rows.skipped, y, tags=rows.tags)
