"""A project of the page: its folder, its labelled items, the newest model and its
evaluation.
"""

import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from threading import Event, Lock
from typing import Any, NamedTuple

import numpy as np

from imprint.backbones import Backbone
from imprint.calibration.held import row_digests
from imprint.core.arrays import Array
from imprint.core.errors import (
    FileError,
    ImprintError,
    NotFittedError,
    ParameterError,
    UnreadableInput,
    reporting,
)
from imprint.core.files.atomic import exclusive
from imprint.core.tree import SEPARATOR
from imprint.core.workers import SupervisedThread
from imprint.embeddings.pipeline import BATCH_SIZE, embed_checked
from imprint.explanation import Explanation, explain
from imprint.head import Head
from imprint.head.merging import DigestsByClass, Merged, count_copies
from imprint.imprinter.embedder import words_of
from imprint.method import Method
from imprint.modalities import modality
from imprint.modalities.image import DECODING
from imprint.serve.evaluation import ModelEvaluation, calibrated, evaluate
from imprint.serve.imported import (
    ImportedModel,
    ModelBasis,
    check_levels,
    check_settings,
    check_tags,
    is_copy,
    read_model,
)
from imprint.serve.labelled import (
    Entry,
    History,
    LabelledItem,
    LabelledSet,
    clean_label,
    clean_name,
)
from imprint.serve.model import ServedModel, fitted_items, refitted, rows_of
from imprint.serve.news import News
from imprint.serve.store import PROJECT, ProjectCache, ProjectStore, digest_of
from imprint.serve.unlabelled import LabellingPool, ServedDrift

MAX_BATCH = 256  # maximum number of changes that are written to the disk together
MAX_EVALUATIONS = 10_000  # maximum number of requests that one evaluation answers
# an evaluation waits for a pause between changes, for a maximum time, in seconds
PAUSE, MAX_WAIT = 0.25, 2.0
LONGEST_DESCRIPTION = 500
MAX_PASSES = 200  # of the network for one explanation


class CommitOutcome(NamedTuple):
    """The result of a change."""

    revision: int
    # of an `add`: the new item, or the item of the class that already has this content
    id: int = 0
    new: bool = True  # whether anything changed
    # items of other classes that have the same content as the added one
    others: tuple[LabelledItem, ...] = ()
    # of an `import`: the classes that were here already and are merged with those of
    # the model, and what the user should know
    merged: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()


class Project:
    """A folder of labelled items. Any thread may use it; changes are applied one after
    the other.

    The store holds the changes and the files. Embeddings and the model are computed
    from them.
    """

    def __init__(self, folder: Path, spec: str, backbone: Backbone, method: Method):
        self.folder, self.spec, self.backbone = folder, spec, backbone
        self.news = News()
        self._network = Lock()  # a network embeds one batch at a time
        self.modality, self.drift, self.pool = (
            modality(backbone.modality),
            ServedDrift(self.news),
            LabellingPool(self),
        )
        plain = Head(method, 0, np.float32, tree_of_labels=True)
        self._imported: dict[str, ImportedModel] = {}  # by the digest of the file
        self._plain = ModelBasis(plain)
        self._bases: dict[tuple[str, ...], ModelBasis] = {}
        self._model, self._fitting = ServedModel(History(), self._plain), Lock()
        # the newest one; the model may be some changes newer
        self.evaluation = ModelEvaluation(self._model)
        # on the clock of `time.monotonic`
        self._changed_at, self._rest_until = 0.0, 0.0
        self._hurry, self.closed = Event(), False
        with ExitStack() as resources, reporting("write", folder):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            enter = resources.enter_context
            enter(exclusive(folder / "lock", lambda: in_use(folder)))
            if (folder / "journal").exists() and not (folder / PROJECT).exists():
                raise FileError(
                    f"{folder} was written by an earlier version: save its examples"
                    " on its page with that version, unpack it, and start imprint serve"
                    " with the unpacked folder and another --folder."
                )
            self.store = enter(closing(ProjectStore(folder)))
            self.rows = enter(
                closing(ProjectCache(folder, backbone.fingerprint, backbone.width))
            )
            self.history = History().replayed(self.store.entries())
            self._embedder = enter(
                closing(SupervisedThread("embed", self._embed, BATCH_SIZE))
            )
            self._embed_missing()
            self.evaluator = enter(
                closing(SupervisedThread("evaluate", self._evaluate, MAX_EVALUATIONS))
            )
            self._committer = enter(
                closing(SupervisedThread("commit", self._commit, MAX_BATCH))
            )
            self._resources = resources.pop_all()
        self.evaluated(urgent=False)

    def close(self) -> None:
        """Finish the running tasks and release the folder."""
        self.closed = True
        self.news.tell()
        self._hurry.set()
        self._resources.close()

    def threads(self) -> dict[str, dict[str, Any]]:
        """The status of every thread by its name."""
        return {
            t.name: t.status()
            for t in (self._committer, self._embedder, self.evaluator)
        }

    # Changes

    def change(
        self, entry: Entry, content: bytes | None = None
    ) -> "Future[CommitOutcome]":
        """Apply a change, whose item or model file has this content; the future ends
        when it is on the disk.
        """
        return self._committer.submit((entry, content))

    def embed(self, raw: bytes, name: str) -> "Future[Array]":
        """The embedding of an input, which this thread decodes; those that are ready
        are embedded together.  # (d,)
        """
        try:
            with DECODING.holding():
                prepared = self.backbone.prepare(self.modality.read(raw))
        except UnreadableInput as e:
            raise UnreadableInput(name, e.reason) from None
        return self._embedder.submit((prepared, name))

    def _embed(self, batch: list[tuple[Any, str]]) -> list[Array]:
        """The embeddings of prepared inputs with their names."""
        prepared, names = zip(*batch)
        with self._network:
            return list(embed_checked(self.backbone, prepared, names))

    def explain(self, raw: bytes) -> Explanation:
        """What speaks for the predicted class of an input and against the second."""
        head = self.calibrated_model().decider
        if head is None:
            raise NotFittedError("There is no model yet: add examples of a class.")
        with DECODING.holding():
            item = self.modality.read(raw)
        with self._network:
            return explain(head, self.backbone, item, max_passes=MAX_PASSES)

    def add(
        self,
        raw: bytes,
        row: Array,
        label: str,
        name: str,
        group: str = "",
        held_out: bool = False,
    ) -> "Future[CommitOutcome]":
        """Add an input, whose embedding is known, to a class."""
        entry: Entry = {
            "do": "add",
            "label": clean_label(label),
            "name": self.modality.file_name(clean_name(name, self.modality.noun), raw),
        }
        entry |= {"digest": digest_of(raw), "group": group, "held_out": held_out}
        if self.modality.typed:
            entry["text"] = str(self.modality.read(raw))
        self.rows.keep(entry["digest"], row)
        return self.change(entry, None if self.modality.typed else raw)

    def describe(self, entry: Entry) -> "Future[CommitOutcome]":
        """Create a class without examples: its description, or else its name, is
        embedded as its first item.
        """
        label = clean_label(entry.get("label"))
        description = entry.get("description", "")
        if not isinstance(description, str) or len(description) > LONGEST_DESCRIPTION:
            raise ParameterError(
                f"A description must be a text of at most {LONGEST_DESCRIPTION}"
                " characters."
            )
        words = " ".join(description.split()) or words_of(label)
        added = {
            "do": "add",
            "label": label,
            "name": clean_name(words, "description"),
            "text": words,
        }
        added["digest"] = digest_of(words.encode())
        self.rows.keep(added["digest"], self.backbone.embed_names([words])[0])
        return self.change(added)

    def import_model(self, raw: bytes, name: str) -> "Future[CommitOutcome]":
        """Add the classes of a model file; those that exist are merged with it.

        A model that cannot be merged is refused, and nothing changes.
        """
        model = read_model(raw, name, self.backbone)
        digest = digest_of(raw)
        self._imported[digest] = model
        entry = {
            "do": "import",
            "model": digest,
            "labels": model.head.labels,
            "name": clean_name(name, "A model"),
        }
        return self.change(entry, raw)

    def _commit(
        self, batch: list[tuple[Entry, bytes | None]]
    ) -> Sequence[CommitOutcome | Exception]:
        history, entries, files = self.history, list[Entry](), dict[str, bytes]()
        outcomes: list[CommitOutcome | Exception] = []
        for entry, content in batch:
            try:
                after, outcome = self._applied(history, entry, content)
            except ImprintError as e:
                outcomes.append(e)
                continue
            if after is not history:
                entries.append(entry)
                history = after
            if content is not None:
                # also for a known item, whose file may have been damaged
                files[digest_of(content)] = content
            outcomes.append(outcome)
        if entries or files:
            self.store.commit(entries, files)
            self.history = history
            self._release_models()
            self.news.tell()
            self.evaluated(urgent=False)
        return outcomes

    def _applied(
        self, history: History, entry: Entry, content: bytes | None
    ) -> tuple[History, CommitOutcome]:
        """The history after a change, and its outcome. An item whose content is in its
        class already is not added.
        """
        if entry.get("do") == "add":
            return _with_item(history, entry)
        after = history.after(entry)
        if entry.get("do") == "import":
            self._imported_model(entry["model"], content)
            before = history.labelled
            notices = self._check_import(before, after.labelled, entry)
            merged = tuple(
                label
                for label, origins in before.classes.items()
                if after.labelled.classes[label] != origins
            )
            return after, CommitOutcome(
                after.revision, merged=merged, notices=tuple(notices)
            )
        if after.labelled.models:
            # undo may bring back a model or a class that no longer fits the others
            self._basis_of(after.labelled).check_merging(after.labelled)
        return after, CommitOutcome(after.revision, new=after is not history)

    # Imported models

    def _check_import(
        self, before: LabelledSet, after: LabelledSet, entry: Entry
    ) -> list[str]:
        """Refuse a model that cannot be merged into the project; returns what the user
        should know.
        """
        model = self._imported_model(entry["model"])
        if not before.classes:
            return []
        name = entry["name"]
        earlier = self._basis_of(before)
        check_tags(earlier.has_tags, model, name)
        check_settings(earlier.empty, model, name)
        if any(SEPARATOR in label for label in before.classes):
            check_levels(bool(earlier.empty.tree_of_labels), model, name)
        if is_copy(self.model().head, model):
            raise ParameterError(
                f"{name} is a copy of the model of this project, so it cannot be merged"
                " into it; import it into a new project."
            )
        basis = self._basis_of(after)
        approximate = basis.check_merging(after)
        copies, conflicts = count_copies([self._digests(before), model.digests()])
        merged = Merged(
            None,
            tuple(approximate),
            copies,
            conflicts,
            lost_calibration=not basis.is_calibrated(after),
        )
        return merged.notices(self.modality.plural)

    def _digests(self, labelled: LabelledSet) -> DigestsByClass:
        """The digests of the rows of all classes: of items and of imported models."""
        X, y = rows_of(fitted_items(labelled, labelled.classes, self.rows), self.rows)
        digests: dict[str, list[int]] = {label: [] for label in labelled.classes}
        for label, number in zip(y.tolist(), row_digests(X).tolist()):
            digests[label].append(number)
        for label, origins in labelled.classes.items():
            for origin in origins:
                stated = self._imported_model(origin.model).digests()
                digests[label] += stated.get(origin.label, [])
        return digests

    def _basis_of(self, labelled: LabelledSet) -> ModelBasis:
        """The settings and imported models of a state of the project."""
        if not labelled.models:
            return self._plain
        basis = self._bases.get(labelled.models)
        if basis is None:
            models = {k: self._imported_model(k) for k in labelled.models}
            basis = ModelBasis.of(self._plain.empty, models)
            # any thread may have been faster
            basis = self._bases.setdefault(labelled.models, basis)
        return basis

    def _release_models(self) -> None:
        """Free the memory of imported models that the project no longer has."""
        current = self.history.labelled.models
        for digest in self._imported.keys() - set(current):
            del self._imported[digest]
        for models in self._bases.keys() - {current}:
            del self._bases[models]

    def _imported_model(self, digest: str, raw: bytes | None = None) -> ImportedModel:
        """The content of an imported file, which is read once."""
        if digest not in self._imported:
            raw = self.store.file(digest) if raw is None else raw
            self._imported[digest] = read_model(
                raw, "the imported model", self.backbone
            )
        return self._imported[digest]

    # The model and its evaluation

    def model(self) -> ServedModel:
        """The model of the newest state; classes that changed since the last call are
        fitted now.
        """
        with self._fitting:
            history, before = self.history, self._model
            if history is not before.history:
                basis = self._basis_of(history.labelled)
                self._model = refitted(before, history, basis, self.rows)
            return self._model

    def calibrated_model(self) -> ServedModel:
        """The newest model with the newest calibration that fits it."""
        return calibrated(self.model(), self.evaluation)

    def evaluated(self, urgent: bool = True) -> "Future[ModelEvaluation]":
        """The evaluation of the newest state, which includes its model. If it is not
        urgent, it waits for a pause.
        """
        self._changed_at = time.monotonic()
        if urgent:
            self._hurry.set()
        return self.evaluator.submit(urgent)

    def _evaluate(self, urgent: list[bool]) -> list[ModelEvaluation]:
        """Evaluate the newest model once for all requests; this takes at most half of
        the time.
        """
        latest = time.monotonic() + MAX_WAIT
        while not any(urgent) and not self._hurry.is_set():
            wait = (
                max(min(self._changed_at + PAUSE, latest), self._rest_until)
                - time.monotonic()
            )
            if wait <= 0:
                break
            self._hurry.wait(wait)
        if not self.closed:
            self._hurry.clear()
            model, started = self.model(), time.monotonic()
            if self.evaluation.model is not model:
                evaluation = evaluate(model, self.evaluation, self.rows)
                evaluation.calibration  # noqa: B018 - computed here, not when the first answer needs it
                self.evaluation = evaluation
                self.news.tell()
                # as long as the evaluation took
                self._rest_until = 2 * time.monotonic() - started
        return [self.evaluation] * len(urgent)

    def content(self, item: LabelledItem) -> bytes:
        """The bytes of an item as they were added."""
        return self.store.file(item.digest) if item.text is None else item.text.encode()

    def _embed_missing(self) -> None:
        """Embed the items that this backbone has not embedded yet. Items whose file is
        damaged are left out.
        """
        # also those that redo may restore
        changes = (*self.history.done, *self.history.undone)
        items = [
            LabelledItem.of_entry(change.item_id, change.entry)
            for change in changes
            if change.entry["do"] == "add"
        ]
        missing = {item.digest: item for item in items if item.digest not in self.rows}

        def embed(item: LabelledItem) -> None:
            with suppress(FileError, UnreadableInput):
                if item.text is None or self.modality.typed:
                    row = self.embed(self.content(item), item.name).result()
                else:  # the description of a class
                    row = self.backbone.embed_names([item.text])[0]
                self.rows.keep(item.digest, row)

        # so many threads fill the batches of the network
        with ThreadPoolExecutor(BATCH_SIZE) as pool:
            list(pool.map(embed, missing.values()))


def _with_item(history: History, entry: Entry) -> tuple[History, CommitOutcome]:
    """The history with one more item, unless its class has this content already."""
    items = history.labelled.having(entry["digest"])
    same = {item.label: item for item in items}
    known, others = same.pop(entry["label"], None), tuple(same.values())
    if known is not None:
        return history, CommitOutcome(
            history.revision, known.id, new=False, others=others
        )
    after = history.after(entry)
    return after, CommitOutcome(after.revision, history.next_id, others=others)


def in_use(folder: Path) -> None:
    """Raise the error for a project that another process has open."""
    raise FileError(f"{folder} is in use by another imprint serve; stop that first.")
