"""Which project a person means, and how it is filled for the first time."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from imprint import backbones, recipes
from imprint.core.digest import digest
from imprint.core.errors import FileError, ParameterError, UnreadableInput
from imprint.core.files.atomic import home
from imprint.datasets.files import FileInputs
from imprint.datasets.folder import load_folder
from imprint.imprinter import Imprinter
from imprint.imprinter.model import DEFAULT
from imprint.method import Method
from imprint.modalities import modality
from imprint.serve.project import CommitOutcome, Project
from imprint.serve.store import digest_of

AT_ONCE = 16
"""Inputs that are decoded and added at the same time."""
IMPORT = "import"  # the fact that states how far a first import has come
UNFINISHED, FINISHED = "unfinished", "finished"


class StartedProject(NamedTuple):
    """A project, and sentences about the folder that filled it: how it was read, and files that could not be."""

    project: Project
    sentences: list[str]


def started(
    source: Path | None,
    folder: Path | None = None,
    backbone: str | None = None,
    recipe: str | None = None,
    threads: int | None = None,
    tree: bool | None = None,
    progress: Callable[[int, int], object] = lambda done, total: None,
) -> StartedProject:
    """The project of a model file, of a folder of pictures, or of neither.

    One that exists is continued, and so is its first import if that was interrupted.
    """
    model = Imprinter.load(source, backbone=backbone, threads=threads) if source and not source.is_dir() else None
    if model is not None and not modality(model.modality).needs_backbone:
        raise FileError(f"{source} is a classifier of embeddings, without a backbone; a page needs one with.")
    if model is None and backbone is None and source is not None:
        backbone = backbones.default(load_folder(source, "train", tree=tree).modality)
    spec = (model.embedder.spec if model else backbone) or backbones.default("image")
    network = model.backbone if model else backbones.load(spec, threads=threads)
    method = Method.of(**recipes.describe(recipe or DEFAULT).parts())
    project = Project(folder or folder_for(source), spec, network, method)
    sentences: list[str] = []
    try:
        if source is not None and model is not None and not project.history.revision:
            project.import_model(source.read_bytes(), str(source)).result()
        elif source is not None and model is None:
            sentences = _import_folder(project, source, tree, progress)
    except BaseException:
        project.close()
        raise
    return StartedProject(project, sentences)


def folder_for(source: Path | None) -> Path:
    """The default folder of a project: one per model file by its content, one per folder of pictures by its path."""
    base = home() / "serve"
    if source is None:
        former = base / "classroom"  # as earlier versions called it
        return former if former.is_dir() else base / "project"
    if source.is_dir():
        return base / f"{source.resolve().name}-{digest([os.fsencode(source.resolve())])[:12]}"
    return base / f"{source.stem}-{digest_of(source.read_bytes())[:12]}"


def _import_folder(
    project: Project, folder: Path, tree: bool | None, progress: Callable[[int, int], object]
) -> list[str]:
    """Add every picture of a folder per class, once; an import that was interrupted goes on where it was."""
    if project.store.fact(IMPORT) != UNFINISHED and project.history.revision:
        return []
    split = load_folder(folder, "train", tree=tree)
    if split.modality != project.modality.name or not isinstance(split.inputs, FileInputs):
        plural = modality(split.modality).plural
        raise ParameterError(
            f"{folder} holds {plural}, and {project.backbone.record.name} reads {project.modality.plural}; choose "
            f"another network with --backbone."
        )
    project.store.state(IMPORT, UNFINISHED)
    inputs, group, sentences = split.inputs, f"import {folder.name}", list(split.omissions)

    def add(i: int, label: str) -> CommitOutcome:
        raw, name = inputs.raw(i), Path(inputs.names[i]).name
        return project.add(raw, project.embed(raw, name).result(), label, name, group).result()

    with ThreadPoolExecutor(AT_ONCE) as pool:
        futures = [pool.submit(add, i, label) for i, label in enumerate(split.labels.tolist())]
        for done, future in enumerate(futures, 1):
            try:
                future.result()
            except UnreadableInput as e:
                sentences.append(str(e))
            progress(done, len(futures))
    project.store.state(IMPORT, FINISHED)
    return sentences
