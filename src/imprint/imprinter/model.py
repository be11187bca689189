"""`Imprinter`: fit, add, forget, save and load."""

import os
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from imprint import backbones, recipes
from imprint.calibration.estimates import warn_of_small_samples
from imprint.core.arrays import plain
from imprint.core.component import PARTS
from imprint.core.errors import DataWarning, ParameterError, check_int
from imprint.core.files import container
from imprint.core.files.atomic import exclusive
from imprint.core.files.mapped import release
from imprint.core.labels import listed, row_labels
from imprint.core.threads import compare_and_set
from imprint.core.weights import read_weights
from imprint.head import Decider, Head
from imprint.head.merging import Merged, default_names
from imprint.imprinter import hub
from imprint.imprinter.embedder import (
    NO_BACKBONE,
    BackboneEmbedder,
    ClassNames,
    Report,
    append_names,
    words_of,
)
from imprint.imprinter.items import Embedded
from imprint.imprinter.predictor import Predictor
from imprint.imprinter.state import ExemplarsByClass, ImprinterState, method_parts
from imprint.method import Method
from imprint.modalities import modality
from imprint.pretrained_classes import PretrainedClasses, PretrainedHead
from imprint.tags import new_head
from imprint.tags.head import default_method

DEFAULT_RECIPE = "kernel"


class Imprinter(Predictor):
    """A backbone and an `ImprintClassifier` in one.

    It turns images, texts, sounds or embeddings into labels.

    Parameters
    ----------
    backbone : str, optional
        `efficientnet_lite0`, `minilm`, `tinynet`, `onnx:FILE`, `resnet50` and so on;
        see `imprint list backbones`. [default: `efficientnet_lite0` for images,
        `minilm` for texts, `yamnet` for sounds, none for embeddings]
    recipe : str, optional
        A method by name; see `imprint list recipes`. [default: `kernel`]
    cache : bool or path
        Whether to cache embeddings, or the folder for them. With a cache, a second
        `fit` is fast, and an interrupted one resumes. [default: True, in the folder
        `IMPRINT_HOME`]
    device, threads
        Where the backbone runs, such as `cuda`, and on how many cores. [default: `cpu`,
        on all cores]
    keep_head : bool or str
        Whether to keep the classes that the backbone was pre-trained on, and how they
        compete with new ones: True or `margin`, `qi`, `done`; see `docs/keep-head.md`.
        Such a model has no expected accuracy. [default: False]
    names : bool or dict, optional
        Whether each class name serves as one more example: True, False, or a dict from
        label to a better wording. By default, the names of a text model are used if
        they agree with the examples.
    tree : bool, optional
        Whether labels such as `animal/cat` are a tree of classes, and nested folders
        are such labels. [default: True for folders, unless sub-folders have numbers as
        names; False for other data]
    **parts
        Parameters of `ImprintClassifier`. `norm_pre`, `generator`, `norm_post`,
        `norm_inf` and `aggregator` replace parts of the recipe. `calibrate` [default:
        True] calibrates probabilities and estimates `expected_accuracy_` and `known`.
        `keep_rows` [default: False] stores the embeddings and names of all training
        inputs, so that each can be forgotten.
        `random_state` [default: 0] is an int; the same data and seed give the same
        model.

    Examples
    --------
    >>> import numpy as np
    >>> black, white = np.zeros((2, 8, 8), np.uint8), np.full((2, 8, 8), 255, np.uint8)
    >>> model = Imprinter(backbone="raw", recipe="janson2022")
    >>> labels = ["black", "black", "white", "white"]
    >>> model.fit(([*black, *white], labels)).predict([white[0] - 9])
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
        keep_head: bool | str = False,
        names: bool | Mapping[str, str] | None = None,
        tree: bool | None = None,
        **parts: Any,
    ):
        calibrate, seed = parts.pop("calibrate", True), parts.pop("random_state", 0)
        keep_rows = parts.pop("keep_rows", False)
        typed: list[tuple[str, Any, Any, str]] = [
            ("calibrate", calibrate, bool, "True or False"),
            ("keep_rows", keep_rows, bool, "True or False"),
            ("tree", tree, bool | None, "True, False or None"),
            ("cache", cache, bool | str | os.PathLike, "True, False or a folder"),
        ]
        for name, value, types, rule in typed:
            if not isinstance(value, types):
                raise ParameterError(
                    f"Imprinter({name}={value!r}): {name} must be {rule}."
                )
        for name in parts:
            if name not in PARTS:
                raise ParameterError(
                    f"Imprinter({name}=...): there is no such part. It takes:"
                    f" {', '.join(PARTS)}."
                )
        method = recipes.describe(recipe or DEFAULT_RECIPE).parts()
        self._strategy = (
            None if keep_head is False else "margin" if keep_head is True else keep_head
        )
        if self._strategy is not None:
            backbone = backbone or backbones.default("image")
            if backbone != NO_BACKBONE:
                # the classifier of the network reads its last layer
                backbone = backbones.last_layer(backbone)
            method = method_parts(self._strategy, backbone, recipe, parts, calibrate)
        self._method = Method.of(**{**method, **parts})
        self._method_chosen = recipe is not None or bool(parts)
        self._seed = check_int("Imprinter", "random_state", seed, minimum=0)
        self._calibrate = calibrate
        self._keep_rows = keep_rows
        self._names = ClassNames.of(names)
        self.embedder = BackboneEmbedder(backbone, cache, device, threads)
        self._tree = self.embedder.tree = tree

    def __repr__(self) -> str:
        state = self._state
        classes = f" with {len(state.head)} classes" if state else ""
        method = state.head.description if state else self._method
        return (
            f"<Imprinter: {self.embedder.spec or 'default backbone'} and"
            f" {method}{classes}>"
        )

    def embed(
        self,
        data: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        progress: Report | None = None,
        classes: Sequence[Any] = (),
    ) -> Embedded:
        """Labelled data as embeddings, which `fit` and `add` also accept.

        Without `y`, `data` is whatever `imprint.datasets.load` takes (a folder with one
        sub-folder per class, a table of texts or embeddings, the name of a data set), a
        `Split`, or a table with a column of labels: a data frame of pandas or polars,
        an Arrow table, a Hugging Face data set or a dict of columns. With labels `y`,
        it is a list or column of inputs: paths, bytes, Pillow images, uint8 arrays,
        float32 samples, texts, or a matrix. `sample_weight` holds one number per
        input: 2 counts as two equal inputs, 0 leaves an input out. Folders below one of
        `classes`, those of a fitted model, belong to that class.
        """
        if isinstance(data, Embedded):
            if sample_weight is None:
                return data
            weight = read_weights("fit", sample_weight, len(data.X))
            return data._replace(weight=weight)
        rows = self.embedder.embed_labelled(data, y, progress, classes, sample_weight)
        for sentence in rows.notices:
            warnings.warn(sentence, DataWarning, stacklevel=3)
        return rows

    def fit(
        self,
        data: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        progress: Report | None = None,
    ) -> Self:
        """Imprint every class of `data` (see `embed`), and discard earlier classes."""
        rows = self.embed(data, y, sample_weight, progress=progress)
        method = self._method
        if rows.tags is not None:
            if self._strategy is not None:
                rule = (
                    "keep_head is for one class per input, not for tags; leave"
                    " keep_head out"
                )
                raise ParameterError(f"fit(data): {rule}.")
            method = method if self._method_chosen else default_method()
        method = replace(method, blocks=rows.blocks)
        empty = new_head(
            Head(method, self._seed, rows.X.dtype), rows.tags, calibrate=False
        )
        names = self._names.examples(self.embedder, rows, empty)
        self._fit(
            rows if names is None else append_names(rows, names),
            method,
            names is not None,
        )
        if not isinstance(data, Embedded):
            warn_of_small_samples(
                self.state.head.imprinted.folds, self.embedder.kind.plural
            )
        return self

    def fit_names(self, classes: Sequence[str] | Mapping[str, str]) -> Self:
        """Imprint classes from their names alone: a list of names, or a dict from label
        to wording.
        """
        if isinstance(classes, str) or not classes:
            raise ParameterError(
                "fit_names(classes): give a list of names, or a dict from label to"
                " wording."
            )
        names = ClassNames.of(
            classes
            if isinstance(classes, Mapping)
            else {name: words_of(name) for name in classes}
        )
        self.embedder.choose(
            modality("text") if self.embedder.spec is None else self.embedder.kind
        )
        rows = names.rows(sorted(names.wording), self.backbone)
        method = replace(self._method, blocks=rows.blocks)
        return self._fit(rows, method, named=True)

    def _fit(self, rows: Embedded, method: Method, named: bool) -> Self:
        # the others use no held-out rows
        calibrate = self._calibrate and self._strategy in (None, "margin")
        # labels that are names of folders hold a slash only where folders are nested
        is_tree = True if self._tree is None and rows.folders else self._tree
        empty = Head(method, self._seed, rows.X.dtype, tree_of_labels=is_tree)
        head: Decider = new_head(empty, rows.tags, calibrate, self._keep_rows)
        if self._strategy is not None:
            classes = PretrainedClasses.of(backbones.head(str(self.embedder.spec)))
            head = PretrainedHead(self._strategy, classes, head.imprinted)
        state = ImprinterState(head, {}, named).with_rows(rows)
        state.head.prepared  # noqa: B018 - raises here, not in the first prediction, if it cannot be solved
        self._state = state
        return self

    def add(
        self,
        data: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        progress: Report | None = None,
        max_rows: int | None = None,
    ) -> Self:
        """Imprint new classes, and more items of known ones; the other classes do not
        change.

        With `max_rows`, each class that gets items keeps its newest ones only, for
        streams whose classes drift; see `ImprintClassifier.partial_fit`.
        """
        if max_rows is not None:
            max_rows = check_int("add", "max_rows", max_rows)
        state = self.state  # raises before any work if the model is not fitted
        classes = state.head.classes.tolist()
        rows = self.embed(data, y, sample_weight, progress=progress, classes=classes)
        new = set(rows.labels) - set(state.head.classes.tolist())
        if state.named and new:
            rows = append_names(rows, self._names.rows(sorted(new), self.backbone))
        compare_and_set(self, "_state", lambda state: state.with_rows(rows, max_rows))
        return self

    def forget(self, label: Any) -> Self:
        """Remove a class, or all classes below the node `animal/` of a tree, as if the
        model had never seen them.
        """
        _ = self.state  # raises if the model is not fitted
        compare_and_set(self, "_state", lambda state: state.without(plain(label)))
        return self

    def forget_rows(self, items: Any, y: Any = None) -> Self:
        """Remove single training inputs, as if the model had never seen them.

        `items` are inputs as `predict` takes them, `y` their class or classes; by
        default, they are removed from every class. See `ImprintClassifier.forget_rows`.
        """
        _ = self.state  # raises if the model is not fitted
        rows = self._rows(items)
        labels = None if y is None else row_labels("forget_rows(items)", y, len(rows))
        compare_and_set(self, "_state", lambda state: state.without_rows(rows, labels))
        return self

    def split(self, classes: Iterable[Any]) -> Self:
        """A model with only some classes, identical to one that never saw the others;
        `animal/` stands for the classes below this node of a tree.
        """
        labels = [plain(label) for label in listed("split(classes)", classes)]
        part = copy(self)
        part._state = self.state.split(labels)
        return part

    def rename(self, old: Any, new: Any) -> Self:
        """Give a class or a tag another name; predictions stay the same. See
        `ImprintClassifier.rename`.
        """
        _ = self.state  # raises if the model is not fitted
        compare_and_set(
            self, "_state", lambda state: state.renamed(plain(old), plain(new))
        )
        return self

    def merge(self, *others: "Imprinter", names: Sequence[str] = ()) -> Self:
        """Take over the classes and training inputs of other models with equal
        settings: the model of one fit over all of them.

        See `ImprintClassifier.merge`. Class names that are examples count once in each
        model. `names`, one for each model, are used in errors.
        """
        states = [self.state, *(other.state for other in others)]
        names = names or default_names(len(states))
        for other, name in zip(others, names[1:]):
            self.embedder.check_same(other.embedder, name, names[0])

        outcome: list[Merged] = []

        def update(state: ImprinterState) -> ImprinterState:
            after, merged = state.merged_with(states[1:], names)
            outcome[:] = [merged]
            return after

        compare_and_set(self, "_state", update)
        for sentence in outcome[0].notices(self.embedder.kind.plural):
            warnings.warn(sentence, DataWarning, stacklevel=2)
        return self

    def save(self, path: str | os.PathLike[str], *, rows: bool = True) -> None:
        """Write the model to one file, atomically.

        It holds the classifier, the record and fingerprint of the backbone (not its
        weights), and the exemplars: names (of texts also the first 100 characters) and
        embeddings of the training inputs closest to a proxy. With `rows=False`, it
        holds no exemplars and no training rows; see `ImprintClassifier.save`.
        """
        state = self.state if rows else self.state.shared()
        document, arrays = state.to_parts()
        document |= {"kind": "classifier", "card": state.card(self.embedder).markdown()}
        if self.embedder.kind.needs_backbone:
            document |= {"kind": "imprinter", "backbone": self.embedder.origin()}
        container.write(
            path, document, arrays, lambda d, a: ImprinterState.from_parts(d, a, path)
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
        mapped: bool = False,
    ) -> Self:
        """Read a model written by `save`; raises `FileError` if the backbone is not the
        one that it was fitted with.

        `backbone` is the new path of a backbone file that has moved. It is also
        required if the backbone has to be imported or downloaded to compute its
        fingerprint. With `mapped`, parts of the file are read when they are needed: a
        first prediction takes less memory, and the file must not be changed in place
        while the model is in use.
        """
        document, arrays = container.read(path, mapped=mapped)
        state = ImprinterState.from_parts(document, arrays, path)
        for array in arrays.values():
            release(array)  # the parts of a mapped file that were checked
        with container.reading(path):
            origin = document.get("backbone")
            spec = NO_BACKBONE if origin is None else str(origin["spec"])
            fingerprint = "" if origin is None else str(origin["fingerprint"])
        self = cls(backbone or spec, cache=cache, device=device, threads=threads)
        if origin is not None:
            self.embedder.check_origin(
                path, spec, fingerprint, named=backbone is not None
            )
        return self._restore(state)

    def push_to_hub(
        self,
        repo: str,
        *,
        private: bool | None = None,
        token: str | None = None,
        message: str = "A model of imprint",
        endpoint: str | None = None,
    ) -> str:
        """Write the model and its card to a repository of the Hugging Face hub.

        The model file holds rows of the training data; `imprint share` writes one
        without them.

        Parameters
        ----------
        repo : str
            `owner/name`; created if it does not exist.
        private : bool, optional
            Whether a new repository is private. [default: as the owner's settings say]
        token : str, optional
            [default: that of `hf auth login`]
        message : str
            That of the commit.
        endpoint : str, optional
            The address of another hub.

        Returns
        -------
        str
            The address of the repository.
        """
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / hub.MODEL_FILE
            self.save(path)
            content = path.read_bytes()
        card = self.card().markdown(hub.MODEL_FILE)
        files = {hub.MODEL_FILE: content, hub.CARD_FILE: card.encode()}
        options = {"private": private, "token": token, "endpoint": endpoint}
        return hub.upload(files, repo, "push_to_hub", message, **options)

    @classmethod
    def from_hub(
        cls,
        repo: str,
        *,
        file: str = hub.MODEL_FILE,
        revision: str | None = None,
        token: str | None = None,
        endpoint: str | None = None,
        **options: Any,
    ) -> Self:
        """Read a model from a repository of the Hugging Face hub.

        The file holds no code. A model whose backbone has to be downloaded is loaded
        only if you name the backbone.

        Parameters
        ----------
        repo : str
            `owner/name`.
        file : str
            The name of the model file in the repository.
        revision : str, optional
            A branch, a tag or a commit. [default: the newest commit]
        token, endpoint : str, optional
            As in `push_to_hub`.
        **options
            Those of `load`, such as `backbone`.
        """
        client = {"token": token, "endpoint": endpoint}
        path = hub.download(repo, file, revision, "from_hub", **client)
        return cls.load(path, **options)

    @classmethod
    def of_head(
        cls,
        spec: str,
        backbone: backbones.Backbone,
        head: Decider,
        exemplars: ExemplarsByClass,
    ) -> Self:
        """A model from a head that was fitted elsewhere; `spec` names the loaded
        backbone.
        """
        self = cls(spec)
        self.embedder.backbone = backbone
        return self._restore(ImprinterState(head, exemplars))

    def _restore(self, state: ImprinterState) -> Self:
        """Take over a state, and the options with which it was fitted, for `fit`."""
        self._state, head = state, state.head.imprinted
        self._method, self._seed, self._calibrate = (
            head.method,
            head.seed,
            head.folds is not None,
        )
        self._strategy = (
            state.head.strategy if isinstance(state.head, PretrainedHead) else None
        )
        self._keep_rows = head.folds is not None and head.folds.keep_rows
        self._method_chosen = state.head.tags  # it is one for tags
        self._tree = head.tree_of_labels
        self.embedder.tree = False if head.tree_of_labels is False else None
        return self

    @classmethod
    @contextmanager
    def change(cls, path: str | os.PathLike[str], **options: Any) -> Iterator[Self]:
        """Load a model, and save it when the block ends without an error; other writers
        of the file wait.
        """
        target = Path(path).resolve()  # links to one file are one model
        if not target.is_file():
            container.read(path)  # raises the error for this case
        with exclusive(target.with_name(f".{target.name}.lock"), remove=True):
            self = cls.load(path, **options)
            yield self
            self.save(path)
