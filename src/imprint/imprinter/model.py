"""The model of a person with a folder of pictures."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.exceptions import NotFittedError

from imprint import backbones, datasets, persistence
from imprint.classifier import PARTS, ImprintClassifier
from imprint.core.errors import FileError, ImprintError, ParameterError, UnreadableInput
from imprint.core.types import Array
from imprint.datasets import Split
from imprint.embeddings import Progress, extract
from imprint.embeddings.lock import exclusive
from imprint.imprinter import gallery
from imprint.imprinter.gallery import Reason, Shelf
from imprint.imprinter.items import BATCH, Embedded, check_modality, embed_items, labelled_items
from imprint.recipes import recipe as classifier_of

Report = Callable[[Progress], object]
DEFAULT = "imprint2025"


class Guess(NamedTuple):
    """A class and the probability the model gives it; probabilities rank and compare, they are not calibrated."""

    label: Any
    probability: float


class Imprinter:
    """A backbone and an `ImprintClassifier` in one: pictures in, labels out.

    Parameters
    ----------
    backbone : str
        `tinynet` (ships with the package), `raw`, `onnx:FILE`, `resnet50` and so on; see `imprint list backbones`.
    recipe : str
        A published method, see `imprint list recipes`; `parts` replace some of its parts.
    cache : bool or path
        Whether and where the embeddings of data sets and folders are kept, so that a second `fit` is fast and an
        interrupted one goes on: True is the library's own folder, False keeps nothing.
    device, threads
        Where the backbone runs.
    random_state : int
        0 unless told otherwise: the same pictures give the same model.
    **parts
        `norm_pre`, `generator`, `norm_post`, `norm_inf`, `aggregator`, as `ImprintClassifier` takes them.

    Examples
    --------
    >>> import numpy as np
    >>> from imprint import Imprinter
    >>> black, white = np.zeros((2, 8, 8), np.uint8), np.full((2, 8, 8), 255, np.uint8)
    >>> model = Imprinter(backbone="raw", recipe="janson2022")
    >>> model.fit(([*black, *white], ["black", "black", "white", "white"])).predict([white[0] - 9])
    array(['white'], dtype='<U5')
    """

    def __init__(
        self,
        backbone: str = "tinynet",
        *,
        recipe: str = DEFAULT,
        cache: bool | str | os.PathLike[str] = True,
        device: str = "cpu",
        threads: int | None = None,
        random_state: Any = 0,
        **parts: Any,
    ):
        for name in parts:
            if name not in PARTS:
                raise ParameterError(f"Imprinter({name}=...): there is no such part. It takes: {', '.join(PARTS)}.")
        self.spec, self.cache, self.device, self.threads = backbone, cache, device, threads
        self._fresh = classifier_of(recipe, random_state=random_state, **parts)
        self._fitted: ImprintClassifier | None = None
        self._shelves: dict[Any, Shelf] = {}

    def __repr__(self) -> str:
        classes = f" with {len(self.classes_)} classes" if self._fitted else ""
        return f"<Imprinter: {self.spec} and {gallery.method_of(self._fitted or self._fresh)}{classes}>"

    @cached_property
    def backbone(self) -> backbones.Backbone:
        """The loaded backbone."""
        return backbones.load(self.spec, self.device, self.threads)

    @property
    def classifier(self) -> ImprintClassifier:
        """The fitted classifier of embeddings."""
        if self._fitted is None:
            raise NotFittedError("This Imprinter has no classes yet: call fit(folder) or load(file) first.")
        return self._fitted

    @property
    def classes_(self) -> Array:
        """The labels the model knows, sorted."""
        return self.classifier.classes_

    @property
    def measure(self) -> str:
        """What the values of `why` are: a `similarity` (more is nearer) or a `distance` (less is nearer)."""
        return "distance" if "nearest" in str(gallery.method_of(self.classifier).aggregator) else "similarity"

    # Learning

    def embed(self, data: Any, progress: Report | None = None) -> Embedded:
        """Labelled data as embeddings, which `fit` and `add` take as well.

        `data` is a folder with one sub-folder per class, the name or file of a data set, a `Split`, or a pair
        (pictures, labels) with pictures as paths or uint8 arrays.
        """
        if isinstance(data, Embedded):
            return data
        if isinstance(data, tuple):
            if len(data) != 2:
                raise ParameterError("fit(data): a tuple must be a pair, (pictures, labels).")
            rows = labelled_items(self.backbone, *data)
            wanted: Sequence[Any] = np.unique(data[1]).tolist()
        else:
            split = data if isinstance(data, Split) else datasets.load(data, "train")
            check_modality(self.backbone, split)
            rows, wanted = self._extract(split, progress), np.unique(split.labels).tolist()
        _complete(rows, wanted)
        return rows

    def fit(self, data: Any, progress: Report | None = None) -> Self:
        """Imprint every class of `data` (see `embed`), forgetting whatever was there before."""
        rows = self.embed(data, progress)
        return self._take(copy(self._fresh).fit(rows.X, rows.y), {}, rows)

    def add(self, data: Any, progress: Report | None = None) -> Self:
        """Imprint new classes, and more pictures of known ones; the other classes stay as they are."""
        known = copy(self.classifier)
        rows = self.embed(data, progress)
        return self._take(known.partial_fit(rows.X, rows.y), self._shelves, rows)

    def forget(self, label: Any) -> Self:
        """Drop a class, exactly as if it had never been seen."""
        known = copy(self.classifier).forget(label)
        nothing = Embedded(np.empty((0, known.n_features_in_), np.float32), [], (), np.empty(0, self.classes_.dtype))
        return self._take(known, self._shelves, nothing)

    # Deciding

    def look(self, items: Any, progress: Report | None = None) -> Embedded:
        """Pictures (paths, or uint8 arrays) or texts as embeddings, which `predict` and its kin take as well.

        What cannot be read is listed in `skipped` and has no row; `predict` refuses it instead.
        """
        return items if isinstance(items, Embedded) else embed_items(self.backbone, items, progress)

    def predict(self, items: Any) -> Array:
        """The label of every picture."""
        return np.asarray(self.classifier.predict(self._rows(items)))

    def predict_proba(self, items: Any) -> Array:
        """The probabilities of every picture, in the order of `classes_`.  # (n, C)"""
        return np.asarray(self.classifier.predict_proba(self._rows(items)))

    def top(self, items: Any, n: int = 3) -> list[list[Guess]]:
        """For every picture the `n` most probable classes, best first; the first is what `predict` says."""
        P, labels = self.predict_proba(items), self.classes_.tolist()
        order = np.argsort(-P, axis=1, kind="stable")[:, :n]
        return [[Guess(labels[c], float(p[c])) for c in row] for p, row in zip(P, order)]

    def why(self, item: Any, n: int = 5) -> list[Reason]:
        """The `n` proxies nearest to one picture (a path, a uint8 array or its embedding)."""
        rows = item.X if isinstance(item, Embedded) else self._rows([item])
        if len(rows) != 1:
            raise ParameterError(f"why(item): {len(rows)} items; explain one at a time.")
        return gallery.reasons(self.classifier, self._shelves, rows[0], n)

    # Keeping

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to one file, whole or not at all.

        It holds the classifier, the backbone's record and fingerprint (not its weights), and of the training
        pictures the names and embeddings of those nearest to a proxy.
        """
        document, arrays = self.classifier.to_parts()
        names, kept = gallery.to_parts(self.classes_.tolist(), self._shelves)
        network = self.backbone
        stated = {"spec": self.spec, "fingerprint": network.fingerprint, "record": network.record.as_json()}
        extra = {"kind": "imprinter", "backbone": stated, "pictures": names}
        persistence.write(path, {**document, **extra}, {**arrays, **kept})

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        backbone: str | None = None,
        cache: bool | str | os.PathLike[str] = True,
        device: str = "cpu",
        threads: int | None = None,
    ) -> Self:
        """Read a model written by `save`; refused if the backbone here is not the one it was made with.

        `backbone` says where that backbone lies now, for a file that has moved.
        """
        document, arrays = persistence.read(path)
        stated = document.get("backbone")
        if not isinstance(stated, dict):
            raise FileError(f"{path} is a classifier of embeddings, without a backbone: use ImprintClassifier.load.")
        own = {name: array for name, array in arrays.items() if not name.startswith(gallery.PREFIX)}
        classifier = ImprintClassifier.from_parts(document, own, source=str(path))
        try:
            made_with = str(stated["fingerprint"])
            self = cls(backbone or str(stated["spec"]), cache=cache, device=device, threads=threads)
            shelves = gallery.from_parts(classifier, document["pictures"], arrays)
        except (KeyError, TypeError, ValueError):
            raise persistence.foreign(path) from None
        if self._fingerprint_for(path) != made_with:
            raise FileError(
                f"{path} was made with the backbone {stated['spec']} of fingerprint {made_with[:8]}; {self.spec} has "
                f"{self.backbone.fingerprint[:8]} here, so its embeddings differ: fit the model again, or use imprint "
                f"{document.get('written_by')}, which made it."
            )
        self._fresh, self._fitted, self._shelves = classifier, classifier, shelves
        return self

    @classmethod
    @contextmanager
    def change(cls, path: str | os.PathLike[str], **options: Any) -> Iterator[Self]:
        """Load a model, and save it when the block ends well; whoever else changes the file waits meanwhile.

        with Imprinter.change("model.imprint") as model:
            model.forget("zebra")
        """
        place = Path(path)
        if not place.is_file():
            persistence.read(place)  # raises the right sentence
        real = place.resolve()  # by whatever link it is named, it is one model
        with exclusive(real.with_name(f".{real.name}.lock"), remove=True):
            self = cls.load(place, **options)
            yield self
            self.save(place)

    # Within

    def _fingerprint_for(self, path: str | os.PathLike[str]) -> str:
        try:
            return self.backbone.fingerprint
        except FileError as e:
            where = f"{path} needs it; say where it lies now: backbone='...', --backbone on the command line"
            raise FileError(f"{str(e).rstrip('.')}. {where}.") from None

    def _take(self, fitted: ImprintClassifier, shelves: dict[Any, Shelf], rows: Embedded) -> Self:
        self._shelves, self._fitted = gallery.shelve(fitted, shelves, rows), fitted
        return self

    def _rows(self, items: Any) -> Array:
        found = self.look(items)
        if found.skipped and not isinstance(items, Embedded):
            raise UnreadableInput(found.skipped[0].name, found.skipped[0].reason)
        if not len(found.X):
            raise ParameterError("predict(items): there are no items.")
        return found.X

    def _extract(self, split: Split, progress: Report | None) -> Embedded:
        if self.cache is False:
            with TemporaryDirectory(prefix="imprint-", ignore_cleanup_errors=True) as folder:
                return _extracted(self.backbone, split, Path(folder), progress)
        return _extracted(self.backbone, split, None if self.cache is True else Path(self.cache), progress)


def _extracted(network: backbones.Backbone, split: Split, folder: Path | None, progress: Report | None) -> Embedded:
    stored = extract(network, split, batch_size=BATCH, folder=folder, progress=progress)
    return Embedded(np.array(stored.X), stored.names, stored.skipped, stored.y)


def _complete(rows: Embedded, wanted: Sequence[Any]) -> None:
    """Refuse data in which a class has no picture that can be read."""
    found = set(np.unique(rows.y).tolist()) if rows.y is not None else set()
    for label in wanted:
        if label not in found:
            name, reason = rows.skipped[0].name, rows.skipped[0].reason
            raise ImprintError(f"No picture of the class {label!r} can be read; the first failure is {name}: {reason}.")
