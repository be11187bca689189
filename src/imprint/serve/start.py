"""Which classroom a person means, and how it is opened for the first time."""

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from imprint import backbones, recipes
from imprint.core.digest import digest
from imprint.core.errors import FileError, ParameterError, UnreadableInput
from imprint.core.files.home import home
from imprint.datasets.folder import load_folder
from imprint.imprinter import Imprinter
from imprint.imprinter.model import DEFAULT
from imprint.method import Method
from imprint.serve.classroom import Classroom
from imprint.serve.committer import Outcome
from imprint.serve.store import digest_of

WRITERS = 64  # pictures that are on their way at one time; most of them wait for the disk


class Opened(NamedTuple):
    """A classroom, and the files that could not be read when it was filled."""

    classroom: Classroom
    unreadable: list[str]


def opened(
    given: Path | None,
    folder: Path | None = None,
    backbone: str | None = None,
    recipe: str | None = None,
    threads: int | None = None,
    progress: Callable[[int, int], object] = lambda done, total: None,
) -> Opened:
    """The classroom of a model file, of a folder of pictures, or of neither; one that was left is taken up again."""
    model = Imprinter.load(given, backbone=backbone, threads=threads) if given and not given.is_dir() else None
    if model is not None and model.modality == "embedding":
        raise FileError(f"{given} is a classifier of embeddings, without a backbone; a page needs one with.")
    spec = (model.embedder.spec if model else backbone) or backbones.default("image")
    network = model.backbone if model else backbones.load(spec, threads=threads)
    if network.modality not in ("image", "text"):
        raise ParameterError(f"imprint serve: {spec} reads {network.modality}s; the page has pictures and texts alone.")
    method = Method.of(**recipes.describe(recipe or DEFAULT).parts())
    classroom = Classroom(folder or place_for(given), spec, network, method)
    unreadable: list[str] = []
    if given is not None and not classroom.history.revision:
        if model is not None:
            classroom.open(given.read_bytes(), str(given)).result()
        else:
            unreadable = _teach(classroom, given, progress)
    return Opened(classroom, unreadable)


def place_for(given: Path | None) -> Path:
    """Where a classroom lies unless told: one for each model by its content, for each folder by its place."""
    base = home() / "serve"
    if given is None:
        return base / "classroom"
    if given.is_dir():
        return base / f"{given.resolve().name}-{digest([os.fsencode(given.resolve())])[:12]}"
    return base / f"{given.stem}-{digest_of(given.read_bytes())[:12]}"


def _teach(classroom: Classroom, folder: Path, progress: Callable[[int, int], object]) -> list[str]:
    """Put every picture of a folder per class into the class of its folder."""
    if classroom.modality != "image":
        raise ParameterError(f"{folder} holds pictures, and {classroom.backbone.record.name} reads texts.")
    split = load_folder(folder, "train")
    if split.modality != "image":
        raise ParameterError(f"imprint serve: {folder} holds {split.modality}s; the page has pictures and texts alone.")
    root, unreadable = Path(split.inputs.root), list[str]()  # type: ignore[attr-defined]
    names, labels = list(split.names), split.labels.tolist()
    asked: list[tuple[str, Future[Outcome]]] = []
    with ThreadPoolExecutor(WRITERS) as pool:
        for name, label in zip(names, labels):
            asked.append((name, pool.submit(_teach_one, classroom, root / name, label, f"open {folder.name}")))
        for done, (_, outcome) in enumerate(asked, 1):
            try:
                outcome.result()
            except UnreadableInput as e:
                unreadable.append(str(e))
            progress(done, len(names))
    return unreadable


def _teach_one(classroom: Classroom, path: Path, label: str, group: str) -> Outcome:
    raw = path.read_bytes()
    row = classroom.embed(raw, path.name).result()
    return classroom.add(raw, row, label, path.name, group).result()
