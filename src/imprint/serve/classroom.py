"""Everything behind the page: a folder with a journal, what was taught, and the newest model."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from imprint.backbones import Backbone
from imprint.core.errors import FileError
from imprint.core.files.locks import exclusive
from imprint.core.types import Array
from imprint.method import Method
from imprint.serve import opened
from imprint.serve.committer import Committer, Entry, Outcome
from imprint.serve.embedder import Embedder
from imprint.serve.examiner import Examiner
from imprint.serve.history import History, replayed
from imprint.serve.journal import Journal
from imprint.serve.judge import Judgement
from imprint.serve.learnt import Basis, Learnt, relearnt
from imprint.serve.store import Pictures, Rows, digest_of
from imprint.serve.taught import Item, clean_label, clean_name


class Model(NamedTuple):
    """The newest model, and what it was made from."""

    history: History
    basis: Basis
    learnt: Learnt


class Classroom:
    """A folder that holds what is taught. Any thread may ask; changes are made one after the other.

    The journal is the truth. Pictures lie beside it under the digests of their bytes, embeddings as well; the model is
    kept in memory and follows from both.
    """

    def __init__(self, folder: Path, spec: str, backbone: Backbone, method: Method, seed: int = 0):
        self.folder, self.spec, self.backbone = folder, spec, backbone
        self._plain = Basis(method, seed)
        self._held = ExitStack()
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._held.enter_context(exclusive(folder / "lock", lambda: _taken(folder)))
        except OSError as e:
            raise e if isinstance(e, FileError) else FileError(f"Cannot write {folder}: {e.strerror}.") from None
        self.pictures = Pictures(folder / "pictures")
        self.models = Pictures(folder / "models")
        self._journal = Journal(folder / "journal")
        self.rows = Rows(folder / f"embeddings-{backbone.fingerprint[:16]}", backbone.width)
        self.embedder = Embedder(backbone)
        self._lock, self._learning = Lock(), Lock()
        self._history = replayed(self._journal.entries)
        self._unlearnt = set(self._history.taught.classes)
        self._model = Model(History(), self._plain, Learnt())
        self._listeners: list[Callable[[], object]] = []
        self._embed_missing()
        self._committer = Committer(self._journal, self._history, self._publish)
        self._examiner = Examiner(self.rows, self.model, self._tell)
        self._examiner.look(set(self._history.taught.classes))

    def close(self) -> None:
        """Finish what is under way and let go of the folder."""
        self._committer.close()
        self.embedder.close()
        self._examiner.close()
        self._journal.close()
        self.rows.close()
        self._held.close()

    # What is taught

    @property
    def history(self) -> History:
        """The newest state."""
        return self._history

    @property
    def modality(self) -> str:
        """`image` or `text`."""
        return self.backbone.modality

    def change(self, entry: Entry) -> "Future[Outcome]":
        """Have an entry of the journal applied; the answer comes when it is on the disk."""
        return self._committer.ask(entry)

    def embed(self, raw: bytes, name: str) -> "Future[Array]":
        """The embedding of a picture's bytes, or of a text in UTF-8."""
        return self.embedder.ask(raw, name)

    def add(self, raw: bytes, row: Array, label: str, name: str, group: str = "") -> "Future[Outcome]":
        """Put a picture or text, whose embedding is known, into a class."""
        if self.modality == "text":
            digest, entry = digest_of(raw), {"text": raw.decode("utf-8").strip()}
        else:
            digest, entry = self.pictures.keep(raw), {}
        self.rows.keep(digest, row)
        named = {"label": clean_label(label), "name": clean_name(name, self.modality), "digest": digest}
        return self.change({"do": "add", **named, **entry, **({"group": group} if group else {})})

    def open(self, raw: bytes, name: str) -> "Future[Outcome]":
        """Take a model file's classes in the place of what is here."""
        labels = opened.check(raw, name, self.backbone)
        return self.change({"do": "open", "model": self.models.keep(raw), "labels": labels})

    # What follows from it

    def model(self) -> Model:
        """The model of the newest state; what changed since it was last asked for is learnt now."""
        with self._learning:
            with self._lock:
                history, labels, self._unlearnt = self._history, self._unlearnt, set()
            before = self._model
            if labels:
                try:
                    self._model = self._learn(before, history, labels)
                except BaseException:
                    with self._lock:
                        self._unlearnt |= labels
                    raise
            elif before.history.revision != history.revision:
                self._model = before._replace(history=history)
            return self._model

    def judgement(self) -> Judgement:
        """The newest judgement, which may be of a state some changes ago."""
        return self._examiner.judgement

    def judged(self) -> Judgement:
        """The judgement of the newest state, waited for."""
        return self._examiner.wait(self._history.revision)

    def listen(self, listener: Callable[[], object]) -> None:
        """Have a function called, from some thread, whenever there is something new to see."""
        self._listeners.append(listener)

    # Within

    def _learn(self, before: Model, history: History, labels: set[str]) -> Model:
        taught = history.taught
        if taught.model == before.history.taught.model:
            basis, learnt = before.basis, before.learnt
        else:
            basis = self._plain if taught.model is None else opened.basis(self.models.read(taught.model))
            learnt, labels = Learnt(), set(taught.classes)
        return Model(history, basis, relearnt(learnt, basis, taught, self.rows, labels))

    def _publish(self, history: History, touched: set[str]) -> None:
        with self._lock:
            self._history = history
            self._unlearnt |= touched
        self._examiner.look(touched)
        self._tell()

    def _tell(self) -> None:
        for listener in self._listeners:
            listener()

    def _embed_missing(self) -> None:
        """Embed what has no embedding by this network, or whose embedding was lost."""
        wanted = {item.digest: item for item in self._all_items() if item.digest not in self.rows}
        asked = {d: self.embed(self.content(item), item.name) for d, item in wanted.items()}
        for digest, row in asked.items():
            self.rows.keep(digest, row.result())

    def content(self, item: Item) -> bytes:
        """A picture's bytes as they came, or a text in UTF-8."""
        return self.pictures.read(item.digest) if item.text is None else item.text.encode()

    def _all_items(self) -> Iterator[Item]:
        """The items that are taught, and those that undoing or redoing may bring back."""
        yield from self._history.taught.items.values()
        for steps in (self._history.done, self._history.undone):
            while steps is not None:
                yield from (item for pair in steps.last.items.values() for item in pair if item is not None)
                steps = steps.before


def _taken(folder: Path) -> None:
    raise FileError(
        f"{folder} is in use by another imprint serve (this one is process {os.getpid()}); stop that first."
    )
