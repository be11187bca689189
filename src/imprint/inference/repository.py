"""The models of an inference server: loaded from files, and loaded again when a file is
replaced.
"""

import hashlib
import os
import re
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any

import numpy as np

from imprint.active.drift import DriftMonitor
from imprint.core.errors import (
    FileError,
    ImprintError,
    ParameterError,
    first_line,
    reporting,
)
from imprint.core.memory import release_memory
from imprint.head import Decider
from imprint.imprinter import Embedded, Imprinter
from imprint.imprinter.predictor import predictions
from imprint.inference.batching import BatchingNetwork, PredictOptions
from imprint.modalities import Modality

# Hexadecimal digits of a model's version: 48 bits, so that two versions of one model
# never meet, and short enough to read.
VERSION_DIGITS = 12
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
WATCH_SECONDS = 1.0  # between two looks at the files
# Seconds for which a network without a model is kept: requests that began before a
# model was replaced end earlier, by their deadline.
RETIREMENT_SECONDS = 600.0

# Every class is a time series, which costs memory here and in Prometheus.
MAX_COUNTED_CLASSES = 1000

Signature = tuple[int, int, int]
"""What changes when a file is replaced: time of change, size, and inode."""


@dataclass
class LoadedModel:
    """One version of a model, which answers queries. It never changes."""

    name: str
    path: Path
    version: str  # the first digits of `sha256`
    sha256: str  # of the file
    signature: Signature
    imprinter: Imprinter
    network: BatchingNetwork
    drift: DriftMonitor | None = field(init=False)

    def __post_init__(self) -> None:
        self.head = self.imprinter.state.head
        self.kind: Modality = self.imprinter.embedder.kind
        self.classes: list[Any] = self.head.classes.tolist()
        self.counted = frozenset(map(str, self.classes[:MAX_COUNTED_CLASSES]))
        self.drift = DriftMonitor.of(self.head)

    @property
    def width(self) -> int:
        """The width of its embeddings."""
        return int(self.head.proxies.weights.shape[1])

    def prepare(self, item: Any) -> Any:
        """One input, in the form that the network takes; `bytes` are the content of a
        file.
        """
        value = self.kind.read(item) if isinstance(item, bytes) else item
        backbone = self.network.backbone
        return value if backbone is None else backbone.prepare(value)

    def warm_up(self) -> None:
        """Answer one artificial input, which computes what the first answer needs."""
        if self.network.backbone is None:
            row = np.ones(self.width, self.head.imprinted.dtype)
            queries = [row]
        else:
            try:
                queries = [self.prepare(item) for item in self.kind.sample(1)]
            except ParameterError:  # a plug-in without artificial inputs
                return
        for prepared in queries:
            self.network.submit(
                self.head, prepared, "warm-up", PredictOptions()
            ).result()


class ModelRepository:
    """Models by name. Requests hold the version that they began with, so that a
    replaced file costs none of them.

    Parameters
    ----------
    files : mapping from str to Path
        The model files by name.
    observe_batch : callable
        Called with the size of each batch.
    load_options
        Passed to `Imprinter.load`, such as `device` and `threads`.
    """

    def __init__(
        self,
        files: Mapping[str, Path],
        observe_batch: Callable[[int], object],
        **load_options: Any,
    ):
        self._files = dict(files)
        self._observe_batch = observe_batch
        self._load_options = load_options
        self.report: Callable[[str, ImprintError | None], object] = lambda *_: None
        """Called with the name of a model and None when a replaced file has been
        loaded, or an error when it cannot be loaded.
        """
        self._networks: dict[str, BatchingNetwork] = {}
        # when networks were first seen without a model, by their keys
        self._unused_since: dict[str, float] = {}
        self._stopped = Event()
        self._refreshing = Lock()
        self._watcher: Thread | None = None
        # the signatures of files that could not be loaded
        self._refused: dict[str, Signature] = {}
        self.models = {name: self._load(name) for name in self._files}

    def __getitem__(self, name: str) -> LoadedModel:
        return self.models[name]

    @property
    def ready(self) -> bool:
        """Whether the threads of all models are alive."""
        networks = list(self._networks.values())
        return all(network.thread.status()["alive"] for network in networks)

    def watch(self) -> None:
        """Look for replaced files in a thread, until `close`."""
        self._watcher = Thread(target=self._watch, name="watch", daemon=True)
        self._watcher.start()

    def close(self) -> None:
        """Stop all threads, after they have answered what waits."""
        self._stopped.set()
        if self._watcher is not None:
            self._watcher.join()
        for network in self._networks.values():
            network.close()

    def refresh(self) -> None:
        """Load the files that were replaced; a file that cannot be loaded leaves its
        model as it is, and is reported once.
        """
        with self._refreshing:
            for name, path in self._files.items():
                self._refresh_one(name, path)
            self._close_unused()

    def _close_unused(self) -> None:
        """Close the networks that no model has used for a while."""
        used = {id(model.network) for model in self.models.values()}
        for key, network in list(self._networks.items()):
            if id(network) in used:
                self._unused_since.pop(key, None)
                continue
            since = self._unused_since.setdefault(key, time.monotonic())
            if time.monotonic() - since > RETIREMENT_SECONDS:
                del self._networks[key], self._unused_since[key]
                network.close()

    def _refresh_one(self, name: str, path: Path) -> None:
        try:
            current = signature_of(path)
        except FileError:
            return  # it is being replaced, or was removed: the model stays
        if current in (self.models[name].signature, self._refused.get(name)):
            return
        try:
            model = self._load(name)
        except ImprintError as error:
            self._refused[name] = current
            self.report(name, error)
            return
        self._refused.pop(name, None)
        if model.sha256 == self.models[name].sha256:
            # the same content under a new date: nothing restarts
            self.models[name].signature = model.signature
            return
        self.models[name] = model
        self.report(name, None)

    def _watch(self) -> None:
        while not self._stopped.wait(WATCH_SECONDS):
            try:
                self.refresh()
            except Exception as e:  # the top level of a thread
                sentence = f"Looking for replaced models failed: {first_line(e)}."
                self.report("", ImprintError(sentence))

    def _load(self, name: str) -> LoadedModel:
        path = self._files[name]
        signature = signature_of(path)
        sha256 = digest_of_file(path)
        imprinter = Imprinter.load(path, cache=False, **self._load_options)
        if signature_of(path) != signature:
            raise FileError(f"{path} changed while it was read; it is read again.")
        head = imprinter.state.head
        # two things that take a tenth of a second or more, each on its own core
        with ThreadPoolExecutor(1) as pool:
            prepared = pool.submit(_answer_once, head)
            network = self._network_of(imprinter)
            prepared.result()
        version = sha256[:VERSION_DIGITS]
        model = LoadedModel(name, path, version, sha256, signature, imprinter, network)
        model.warm_up()
        release_memory()
        return model

    def _network_of(self, imprinter: Imprinter) -> BatchingNetwork:
        """The network of a model. Models with one backbone share it, and their inputs
        share batches.
        """
        embedder = imprinter.embedder
        has_backbone = embedder.kind.needs_backbone
        # rows of different widths do not share a batch
        key = (
            embedder.reader.fingerprint
            if has_backbone
            else f"width {imprinter.state.head.proxies.weights.shape[1]}"
        )
        if key not in self._networks:
            backbone = embedder.backbone if has_backbone else None
            self._networks[key] = BatchingNetwork(backbone, self._observe_batch)
        network = self._networks[key]
        if network.backbone is not None:
            embedder.backbone = network.backbone
        return network


def _answer_once(head: Decider) -> None:
    """Compute what a head computes with its first answer."""
    width = head.proxies.weights.shape[1]
    row = np.ones((1, width), head.imprinted.dtype)
    predictions(head, Embedded(row, ("warm-up",), ()))


def signature_of(path: Path) -> Signature:
    """What tells a file from the one that replaces it."""
    with reporting("read", path):
        status = os.stat(path)
    return status.st_mtime_ns, status.st_size, status.st_ino


def digest_of_file(path: Path) -> str:
    """The SHA-256 digest of a file."""
    with reporting("read", path), open(path, "rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def named_files(arguments: list[str]) -> dict[str, Path]:
    """The names and files of `imprint api MODEL...`: `NAME=FILE`, or a file whose name
    without its suffix is the name of the model.
    """
    files: dict[str, Path] = {}
    for argument in arguments:
        stated, separator, rest = argument.partition("=")
        is_named = bool(separator) and not Path(argument).exists()
        path = Path(rest if is_named else argument)
        name = stated if is_named else path.stem
        if not NAME.fullmatch(name):
            raise ParameterError(
                f"MODEL {argument!r}: a name has letters, digits, '.', '_' and '-', and"
                " begins with a letter or a digit; write NAME=FILE."
            )
        if name in files:
            raise ParameterError(
                f"MODEL {argument!r}: there is another model {name}; write NAME=FILE."
            )
        files[name] = path
    return files
