"""From data of any modality to embeddings, by a backbone or unchanged, and from class
names to embeddings.
"""

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from imprint import backbones, datasets
from imprint.core.errors import (
    FileError,
    ImprintError,
    ParameterError,
    UnreadableInput,
)
from imprint.core.label_sets import single_labels
from imprint.core.weights import read_weights
from imprint.datasets import Split
from imprint.datasets.files import FileInputs
from imprint.datasets.folder import Nesting
from imprint.embeddings import EmbeddingProgress, embed
from imprint.head import Head
from imprint.imprinter.items import (
    BLANK_REASON,
    Embedded,
    PythonInputs,
    notices,
    split_of_values,
)
from imprint.modalities import Modality, modality
from imprint.modalities.embedding import matrix
from imprint.tags import TagHead

Report = Callable[[EmbeddingProgress], object]
# instead of the name of a backbone, for a model whose inputs are embeddings
NO_BACKBONE = "embeddings"
# by which the mean rank of the class names must be better than chance: one-sided, 2.3 %
CRITICAL_DEVIATIONS = 2.0
# the caption of the row of a class name, followed by its words
NAME_CAPTION = "the class name"


class DeferredBackbone:
    """The record and fingerprint of a backbone; any other attribute loads it.

    If all embeddings are in the cache, the backbone is never loaded.
    """

    def __init__(
        self,
        record: backbones.Record,
        fingerprint: str,
        load: Callable[[], backbones.Backbone],
        parts: tuple["DeferredBackbone", ...] = (),
    ):
        self.parts = parts
        self.record, self.fingerprint, self._load = record, fingerprint, load
        self.width, self.modality = record.width, record.modality
        self.blocks = record.blocks

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # `copy` and `pickle` look for such attributes
            raise AttributeError(name)
        return getattr(self._load(), name)


class BackboneEmbedder:
    """A backbone by name, loaded when first needed. None means the default backbone of
    the first data.
    """

    def __init__(
        self,
        spec: str | None,
        cache: bool | str | os.PathLike[str],
        device: str,
        threads: int | None,
    ):
        self.spec, self.cache, self.device, self.threads = spec, cache, device, threads
        # how nested folders are read; None: as a tree, unless they are named by numbers
        self.tree: bool | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Copies and pickles hold the name of the backbone, and load it again when
        needed.
        """
        return {
            name: value
            for name, value in vars(self).items()
            if name not in ("backbone", "reader")
        }

    @cached_property
    def backbone(self) -> backbones.Backbone:
        """The loaded backbone."""
        if self.spec is None or self.spec == NO_BACKBONE:
            raise ParameterError("This model reads embeddings; it has no backbone.")
        return backbones.load(self.spec, self.device, self.threads)

    @cached_property
    def reader(self) -> Any:
        """The backbone; if its record states its fingerprint, it is loaded only when an
        input has to be embedded.
        """
        fingerprint = (
            backbones.stated_fingerprint(self.spec, self.device) if self.spec else None
        )
        if fingerprint is None or "backbone" in self.__dict__:
            return self.backbone
        return DeferredBackbone(
            backbones.record(str(self.spec)),
            fingerprint,
            lambda: self.backbone,
            self._deferred_parts(),
        )

    def _deferred_parts(self) -> tuple[DeferredBackbone, ...]:
        """The networks of a backbone that joins several; each has its own cache."""
        specs = backbones.specs(self.spec)
        if len(specs) == 1:
            return ()
        parts = []
        for i, spec in enumerate(specs):
            fingerprint = str(backbones.stated_fingerprint(spec, self.device))
            load = partial(self._part, i)
            parts.append(DeferredBackbone(backbones.record(spec), fingerprint, load))
        return tuple(parts)

    def _part(self, i: int) -> backbones.Backbone:
        return self.backbone.parts[i]

    @property
    def kind(self) -> Modality:
        """The modality of the inputs that it reads."""
        return modality(
            "embedding" if self.spec == NO_BACKBONE else str(self.reader.modality)
        )

    @property
    def requested(self) -> str | None:
        """The modality of the backbone, if one was named; tables are read as that."""
        if self.spec in (None, NO_BACKBONE):
            return None
        try:
            return backbones.record(str(self.spec)).modality
        except ParameterError:  # it is not known before the network is loaded
            return None

    def choose(self, kind: Modality, data: Split | None = None) -> None:
        """Choose the default backbone for some data if none was named; refuse data that
        the backbone does not read.
        """
        if self.spec is None:
            self.spec = (
                backbones.default(kind.name) if kind.needs_backbone else NO_BACKBONE
            )
        if self.kind != kind:
            subject = (
                "This model" if self.spec == NO_BACKBONE else self.reader.record.name
            )
            raise ParameterError(
                f"{subject} reads {self.kind.plural} and the data are {kind.plural}."
            )
        if data is not None and kind.needs_backbone:
            self._specialise(kind, data)

    def _specialise(self, kind: Modality, data: Split) -> None:
        """Choose the variant of the backbone for inputs such as the first one that can
        be read.
        """
        parts = backbones.specs(self.spec)
        for i in range(len(data)):
            try:
                read = partial(data.inputs.__getitem__, i)
                parts = [kind.backbone_for(part, read) for part in parts]
            except UnreadableInput:
                continue
            break
        spec = "+".join(parts)
        if spec != self.spec:
            for name in ("backbone", "reader"):
                self.__dict__.pop(name, None)
            self.spec = spec

    def origin(self) -> dict[str, Any]:
        """What a model file states about the backbone: its name, fingerprint and
        record.
        """
        network = self.backbone
        return {
            "spec": self.spec,
            "fingerprint": network.fingerprint,
            "record": network.record.as_json(),
        }

    def check_origin(
        self, path: str | os.PathLike[str], spec: str, fingerprint: str, named: bool
    ) -> None:
        """Refuse a model file whose backbone is not this one.

        A file never determines what is imported or downloaded: if the backbone has to
        be loaded to compute its fingerprint, the user must have `named` it.
        """
        try:
            actual = backbones.stated_fingerprint(str(self.spec), self.device)
            if actual is None and named:
                actual = self.backbone.fingerprint
        except FileError as e:
            advice = "give its new path: backbone='...', --backbone on the command line"
            raise FileError(
                f"{str(e).rstrip('.')}. {path} needs it; {advice}."
            ) from None
        if actual is None:
            raise FileError(
                f"{path} states the backbone {spec}, which has to be loaded before it"
                f" can be trusted; if you want that, name it: backbone={spec!r},"
                f" --backbone {spec} on the command line."
            )
        if actual != fingerprint:
            raise FileError(
                f"{path} was fitted with the backbone {spec} of fingerprint"
                f" {fingerprint[:8]}; {self.spec} has {actual[:8]} here, so its"
                " embeddings differ: fit the model again, or use the version that"
                " wrote it."
            )

    def check_same(self, other: "BackboneEmbedder", name: str, own_name: str) -> None:
        """Refuse to merge the models of another embedder, unless it has the same
        network.
        """
        networks = [
            (None, "no backbone")
            if embedder.spec == NO_BACKBONE
            else (embedder.reader.fingerprint, f"the backbone {embedder.spec}")
            for embedder in (self, other)
        ]
        (fingerprint, network), (other_fingerprint, other_network) = networks
        if fingerprint != other_fingerprint:
            detail = "" if network != other_network else " with other weights"
            raise ParameterError(
                f"merge: {name} has {other_network}{detail} and {own_name} has"
                f" {network}; fit both with the same."
            )

    def nesting(self, classes: Iterable[Any] = ()) -> Nesting:
        """The option `tree` of `datasets.load`: how to read nested folders, given the
        classes of a model.
        """
        return [str(label) for label in classes] if self.tree is None else self.tree

    def embed_labelled(
        self,
        data: Any,
        labels: Any = None,
        progress: Report | None = None,
        classes: Iterable[Any] = (),
        sample_weight: Any = None,
    ) -> Embedded:
        """The embeddings of labelled data; see `Imprinter.embed`. A pair (items,
        labels) may be one argument.
        """
        if isinstance(data, tuple) and labels is None:
            if len(data) != 2:
                raise ParameterError(
                    "fit(data): a tuple must be a pair, (items, labels)."
                )
            data, labels = data
        if labels is None and isinstance(data, str | os.PathLike):
            data = datasets.load(
                data, "train", tree=self.nesting(classes), modality=self.requested
            )
        split = self._split(data, labels)
        if not len(split.labels):
            raise ParameterError(
                "fit(data): there are no labels; give them: fit(items, labels)."
            )
        weight = None
        if sample_weight is not None:
            weight = read_weights("fit", sample_weight, len(split))
        rows = self._rows(split, progress)
        if weight is not None:
            rows = rows._replace(weight=weight[rows.readable])
        if missing := set(() if split.tags else split.classes).difference(rows.labels):
            label = min(missing)
            if all(skipped.reason == BLANK_REASON for skipped in rows.skipped):
                raise ImprintError(
                    f"Every text of the class {label!r} is blank; give others, or leave"
                    " the class out."
                )
            failure = f"{rows.skipped[0].name}: {rows.skipped[0].reason}"
            raise ImprintError(
                f"Nothing of the class {label!r} can be read; the first failure is"
                f" {failure}."
            )
        blank = (
            []
            if isinstance(split.inputs, FileInputs)
            else [s for s in rows.skipped if s.reason == BLANK_REASON]
        )
        sentences = tuple(
            notices(
                split, rows, blank, self.reader if split.kind.needs_backbone else None
            )
        )
        if split.kind.typed:  # exemplars show the words of texts
            captions = split.captions
            rows = rows._replace(names=[captions[i] for i in rows.readable.tolist()])
        return rows._replace(
            notices=sentences,
            skipped=tuple(s for s in rows.skipped if s not in blank),
            folders=split.folders,
        )

    def embed_unlabelled(self, items: Any, progress: Report | None = None) -> Embedded:
        """The embeddings of items: images or sounds as paths or arrays, texts, or a
        matrix of embeddings.
        """
        return (
            items
            if isinstance(items, Embedded)
            else self._rows(self._split(items), progress)
        )

    def _split(self, data: Any, labels: Any = None) -> Split:
        if not isinstance(data, Split):
            data = split_of_values(
                data, labels, None if self.spec is None else self.kind
            )
        self.choose(data.kind, data)
        return data

    def _rows(self, split: Split, progress: Report | None) -> Embedded:
        y = split.labels if len(split.labels) else None
        tags = split.classes if split.tags else None
        if not split.kind.needs_backbone:
            X = matrix(split.inputs)
            return Embedded(X, split.names, (), y, tags=tags, blocks=split.blocks)
        is_python = isinstance(split.inputs, PythonInputs)
        if (
            split.kind.typed
            and not is_python
            and not isinstance(split.inputs, FileInputs)
        ):
            # skips blank texts
            split = replace(split, inputs=PythonInputs(split.kind, split.inputs))
        folder = None if isinstance(self.cache, bool) else Path(self.cache)
        remember = self.cache is not False and not is_python
        rows = embed(
            self.reader, split, folder=folder, progress=progress, remember=remember
        )
        names = [split.names[i] for i in rows.index.tolist()]
        return Embedded(
            rows.X,
            names,
            rows.skipped,
            None if y is None else y[rows.index],
            tags=tags,
            blocks=self.reader.record.block_widths,
        )


def words_of(label: object) -> str:
    """The words of a label: underscores, hyphens and camel case become spaces."""
    spaced = re.sub(r"[_\-./]+", " ", str(label))
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", spaced)
    words = [
        word if word.isupper() and len(word) > 1 else word.lower()
        for word in spaced.split()
    ]
    return " ".join(words) or str(label)


@dataclass(frozen=True)
class ClassNames:
    """Which class names serve as examples.

    `use` is True (all), False (none), or None: all names of a text model, if they agree
    with the examples. `wording` replaces the words of some labels.
    """

    use: bool | None
    wording: Mapping[str, str]

    @classmethod
    def of(cls, names: Any) -> "ClassNames":
        """From the parameter `names` of `Imprinter`."""
        if names is None or isinstance(names, bool):
            return cls(names, {})
        if isinstance(names, Mapping) and all(
            isinstance(text, str) and text.strip() for text in names.values()
        ):
            return cls(True, {str(label): text for label, text in names.items()})
        raise ParameterError(
            "Imprinter(names=...): names must be True, False, None, or a dict from"
            " label to wording."
        )

    def rows(self, labels: Sequence[Any], backbone: backbones.Backbone) -> Embedded:
        """One row for each label: the embedding of its words."""
        texts = [self.wording.get(str(label), words_of(label)) for label in labels]
        captions = [f"{NAME_CAPTION}, {text!r}" for text in texts]
        return Embedded(
            backbone.embed_names(texts),
            captions,
            (),
            np.array(list(labels)),
            blocks=backbone.record.block_widths,
        )

    def examples(
        self, embedder: BackboneEmbedder, rows: Embedded, empty: Head | TagHead
    ) -> Embedded | None:
        """The embedding of each class name; None if the names do not serve as examples.

        By default, they serve if they agree with the examples `rows`. A model of the
        examples alone, fitted from the `empty` head, ranks all classes for each name.
        If names have no meaning, the rank of the right class is uniform. The mean of C
        ranks, scaled to 0..1, then has the mean 1/2 and the variance 1 / (12 C).
        """
        if self.use is False or (self.use is None and not embedder.kind.typed):
            return None
        names = self.rows(rows.labels, embedder.backbone)
        if self.use or len(names.X) < 2:
            return names if self.use else None
        head = empty.learn(rows.X, np.asarray(rows.y), rows.weight)
        scores = np.asarray(head.scores(names.X.astype(rows.X.dtype, copy=False)))
        scores = scores[:, np.searchsorted(head.classes, np.asarray(names.y))]
        ranks = (scores > np.diagonal(scores)[:, None]).sum(axis=1) / (len(head) - 1)
        return (
            names
            if ranks.mean() < 0.5 - CRITICAL_DEVIATIONS / np.sqrt(12 * len(ranks))
            else None
        )


def append_names(rows: Embedded, names: Embedded) -> Embedded:
    """The examples, followed by one row for each class name."""
    name_labels = (
        np.asarray(names.y) if rows.tags is None else single_labels(names.labels)
    )
    X = np.concatenate([rows.X, names.X.astype(rows.X.dtype, copy=False)])
    y = np.concatenate([np.asarray(rows.y), name_labels])
    weight = rows.weight
    if weight is not None:
        weight = np.concatenate([weight, np.ones(len(name_labels))])
    return rows._replace(X=X, names=[*rows.names, *names.names], y=y, weight=weight)
