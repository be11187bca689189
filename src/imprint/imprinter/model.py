"""The model of a person with a folder of pictures, a table of texts, or embeddings."""

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from imprint import backbones, recipes
from imprint.calibration import CrossValidation
from imprint.calibration.caveats import warn_of_small_samples
from imprint.core.compare_and_set import compare_and_set
from imprint.core.defaults import PARTS
from imprint.core.errors import DataWarning, FileError, NotFittedError, ParameterError
from imprint.core.files import container
from imprint.core.files.locks import exclusive
from imprint.core.labels import plain
from imprint.head import Head
from imprint.imprinter import pretrained
from imprint.imprinter.answers import Answering
from imprint.imprinter.embedder import ROWS, BackboneEmbedder, Report
from imprint.imprinter.exemplars import Exemplars
from imprint.imprinter.items import Embedded
from imprint.imprinter.names import ClassNames, joined
from imprint.imprinter.state import ImprinterState
from imprint.method import Method
from imprint.modalities import modality
from imprint.pretrained_classes.head import PretrainedHead

if TYPE_CHECKING:
    from imprint.classifier import ImprintClassifier

DEFAULT = "kernel"


class Imprinter(Answering):
    """A backbone and an `ImprintClassifier` in one: pictures, texts or embeddings in, labels out.

    Parameters
    ----------
    backbone : str, optional
        `efficientnet_lite0`, `minilm`, `tinynet`, `onnx:FILE`, `resnet50` and so on; see `imprint list backbones`.
        [default: `efficientnet_lite0` for pictures, `minilm` for texts, `yamnet` for sounds, none for embeddings]
    recipe : str, optional
        A published method, see `imprint list recipes`; `parts` replace some of its parts. [default: `kernel`]
    cache, device, threads
        Whether and where embeddings are cached (a second `fit` is fast, an interrupted one resumes); where it runs.
    calibrate : bool
        Whether to estimate `expected_accuracy_` and `known`, and to calibrate probabilities; see `ImprintClassifier`.
    keep_head : bool or str
        Whether to keep the classes of the backbone's own head, and how old and new classes decide together: True or
        `margin`, `qi`, `done`; see `docs/keep-head.md`. Such a model has no expected accuracy.
    names : bool or dict, optional
        Whether each class name serves as one more example: True, False, or a dict from label to a better wording.
        By default, the names of a text model are used if they agree with the examples.
    **parts
        `norm_pre`, `generator`, `norm_post`, `norm_inf` and `aggregator` as `ImprintClassifier` takes them, and
        `random_state`, an int: the same data and seed give the same model. [default: 0]

    Examples
    --------
    >>> import numpy as np
    >>> black, white = np.zeros((2, 8, 8), np.uint8), np.full((2, 8, 8), 255, np.uint8)
    >>> model = Imprinter(backbone="raw", recipe="janson2022")
    >>> model.fit(([*black, *white], ["black", "black", "white", "white"])).predict([white[0] - 9])
    array(['white'], dtype='<U5')
    """

    def __init__(
        self,
        backbone: str | None = None,
        *,
        recipe: str | None = None,
        cache: bool | str | os.PathLike[str] = True,
        device: str = "cpu",
        threads: int | None = None,
        calibrate: bool = True,
        keep_head: bool | str = False,
        names: bool | Mapping[str, str] | None = None,
        **parts: Any,
    ):
        self._seed = _seed(parts.pop("random_state", 0))
        for name in parts:
            if name not in PARTS:
                raise ParameterError(f"Imprinter({name}=...): there is no such part. It takes: {', '.join(PARTS)}.")
        self._keep = pretrained.Keep.of(keep_head, backbone, recipe, parts, calibrate)
        self.embedder = BackboneEmbedder(self._keep.spec if self._keep else backbone, cache, device, threads)
        given = self._keep.parts if self._keep else recipes.describe(recipe or DEFAULT).parts()
        self._method = Method.of(**{**given, **parts})
        self._calibrate, self._names = calibrate, ClassNames.of(names)
        self._learnt: ImprinterState | None = None

    def __repr__(self) -> str:
        learnt = self._learnt
        classes = f" with {len(learnt.head)} classes" if learnt else ""
        method = learnt.head.description if learnt else self._method
        return f"<Imprinter: {self.embedder.spec or 'default backbone'} and {method}{classes}>"

    @property
    def backbone(self) -> backbones.Backbone:
        """The loaded backbone; a model of embeddings has none."""
        return self.embedder.backbone

    @property
    def learnt(self) -> ImprinterState:
        """What the model knows now, as one immutable value."""
        if self._learnt is None:
            raise NotFittedError("This Imprinter has no classes yet: call fit(folder) or load(file) first.")
        return self._learnt

    @property
    def fitted(self) -> bool:
        return self._learnt is not None

    @property
    def classifier(self) -> "ImprintClassifier":
        """The fitted classifier of embeddings."""
        from imprint.classifier import ImprintClassifier

        head = self.learnt.head
        if isinstance(head, PretrainedHead):
            raise ParameterError("Imprinter.classifier: with keep_head the network's classes decide too; use predict.")
        return ImprintClassifier.of_head(head.imprinted)

    def embed(self, data: Any, y: Any = None, *, progress: Report | None = None) -> Embedded:
        """Labelled data as embeddings, which `fit` and `add` take as well.

        Without `y`, `data` is whatever `imprint.datasets.load` takes (a folder with one sub-folder per class, a table
        of texts or embeddings, the name of a data set), a `Split`, or a table with a column of labels: a data frame
        of pandas or polars, an Arrow table, a Hugging Face data set or a dict of columns. With labels `y`, it is a
        list or column of inputs: paths, bytes, Pillow images, uint8 arrays, float32 samples, texts, or a matrix.
        """
        if isinstance(data, Embedded):
            return data
        rows = self.embedder.labelled(data, y, progress)
        for sentence in rows.notices:
            warnings.warn(sentence, DataWarning, stacklevel=3)
        return rows

    def fit(self, data: Any, y: Any = None, *, progress: Report | None = None) -> Self:
        """Imprint every class of `data` (see `embed`), forgetting whatever was there before."""
        rows = self.embed(data, y, progress=progress)
        names = self._names.examples(self.embedder, rows, self._method, self._seed)
        self._fit(rows if names is None else joined(rows, names), names is not None)
        if not isinstance(data, Embedded):
            warn_of_small_samples(self.learnt.head.imprinted.folds, self.embedder.kind.plural)
        return self

    def fit_names(self, classes: Sequence[str] | Mapping[str, str]) -> Self:
        """Imprint classes from their names alone: a list of names, or a dict from label to wording."""
        names = ClassNames.alone(classes)
        self.embedder.choose(modality("text") if self.embedder.spec is None else self.embedder.kind)
        return self._fit(names.rows(sorted(names.wording), self.backbone.embed_names), True)

    def _fit(self, rows: Embedded, named: bool) -> Self:
        folds = CrossValidation.new(self._method, self._seed, rows.X.dtype) if self._calibrate else None
        empty = Head(self._method, self._seed, rows.X.dtype, folds=folds)
        learnt = ImprinterState(self._keep.beside(empty) if self._keep else empty, {}, named).with_rows(rows)
        learnt.head.prepared  # noqa: B018 - what cannot decide is refused here, not by the first prediction
        self._learnt = learnt
        return self

    def add(self, data: Any, y: Any = None, *, progress: Report | None = None) -> Self:
        """Imprint new classes, and more items of known ones; the other classes stay as they are."""
        learnt = self.learnt  # refused before the work where there is nothing to add to
        rows = self.embed(data, y, progress=progress)
        new = set(np.asarray(rows.y).tolist()) - set(learnt.head.classes.tolist())
        if learnt.named and new:
            rows = joined(rows, self._names.rows(sorted(new), self.backbone.embed_names))
        compare_and_set(self, "_learnt", lambda learnt: learnt.with_rows(rows))
        return self

    def forget(self, label: Any) -> Self:
        """Drop a class, exactly as if it had never been seen."""
        _ = self.learnt  # refused where there is nothing to forget
        compare_and_set(self, "_learnt", lambda learnt: learnt.without(plain(label)))
        return self

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to one file, whole or not at all.

        It holds the classifier, the backbone's record and fingerprint (not its weights), and the names (of texts the
        first 100 characters, too) and embeddings of the training inputs closest to a proxy.
        """
        document, arrays = self.learnt.to_parts()
        named = self.embedder.kind.needs_backbone
        kind = {"kind": "imprinter", "backbone": self.embedder.origin()} if named else {"kind": "classifier"}
        document |= {**kind, "card": self.card().markdown()}
        container.write(
            path, document, arrays, lambda again, its_arrays: pretrained.from_parts(again, its_arrays, path)
        )

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

        `backbone` says where that backbone lies now, for a file that has moved. The file alone never causes anything
        to be imported or downloaded: a backbone whose fingerprint cannot be told without that must be named.
        """
        document, arrays = container.read(path)
        head = pretrained.from_parts(document, arrays, path)
        imprinted = head.imprinted
        try:
            stated = document.get("backbone", {"spec": ROWS})
            self = cls(backbone or str(stated["spec"]), cache=cache, device=device, threads=threads)
            learnt = ImprinterState.of_parts(head, document, arrays)
            if "backbone" in document:
                made_with = str(stated["spec"]), str(stated["fingerprint"])
                self.embedder.check_origin(path, *made_with, named=backbone is not None)
        except (KeyError, TypeError, ValueError) as e:
            if isinstance(e, ParameterError):
                raise FileError(f"{path}: {e}") from None
            raise container.foreign(path) from None
        self._method, self._seed, self._calibrate = imprinted.method, imprinted.seed, imprinted.folds is not None
        self._keep = pretrained.Keep.again(head, str(stated["spec"]))
        self._learnt = learnt
        return self

    @classmethod
    def of_head(cls, spec: str, backbone: backbones.Backbone, head: Head, shelves: dict[Any, Exemplars]) -> Self:
        """A model of something learnt elsewhere from a loaded backbone's embeddings; `spec` is how that is named."""
        self = cls(spec)
        self.embedder.__dict__["backbone"] = backbone
        self._method, self._seed, self._learnt = head.method, head.seed, ImprinterState(head, shelves)
        return self

    @classmethod
    @contextmanager
    def change(cls, path: str | os.PathLike[str], **options: Any) -> Iterator[Self]:
        """Load a model, and save it when the block ends without an error; other writers of the file wait."""
        real = Path(path).resolve()  # by whatever link it is named, it is one model
        if not real.is_file():
            container.read(path)  # raises the right sentence
        with exclusive(real.with_name(f".{real.name}.lock"), remove=True):
            self = cls.load(path, **options)
            yield self
            self.save(path)


def _seed(random_state: Any) -> int:
    if isinstance(random_state, bool) or not isinstance(random_state, int | np.integer) or random_state < 0:
        raise ParameterError(f"Imprinter(random_state={random_state!r}): random_state must be int >= 0.")
    return int(random_state)
