"""Opening a project for `imprint serve`, and importing the model file or folder that it was started with."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from imprint import backbones, recipes
from imprint.backbones import Backbone
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
from imprint.serve.store import digest_of, facts_of

AT_ONCE = 16
"""Number of inputs that are decoded and added at the same time."""
IMPORT = "import"  # the fact that holds the progress of the first import
UNFINISHED, FINISHED = "unfinished", "finished"


class StartedProject(NamedTuple):
    """A project, and sentences about the folder that was imported: how it was read, and unreadable files."""

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
    """The project of a model file, of a folder of pictures, or, without a `source`, the default one.

    An existing project is continued, and so is an interrupted import.
    """
    model = Imprinter.load(source, backbone=backbone, threads=threads) if source and not source.is_dir() else None
    if model is not None and not modality(model.modality).needs_backbone:
        raise FileError(f"{source} is a classifier of embeddings, without a backbone; the page needs a model with one.")
    if model is None and backbone is None and source is not None:
        backbone = backbones.default(load_folder(source, "train", tree=tree).modality)
    network = model.backbone if model else backbones.load(backbone, threads=threads) if backbone else None
    folder = folder or folder_for(source, network.modality if network else None)
    project = opened(folder, model.embedder.spec if model else backbone, recipe, threads, network)
    if source is not None and not project.store.fact("name"):
        project.store.state("name", source.resolve().stem)
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


def opened(
    folder: Path,
    spec: str | None = None,
    recipe: str | None = None,
    threads: int | None = None,
    network: Backbone | None = None,
) -> Project:
    """The project in a folder, with its stored backbone and recipe unless others are given."""
    facts = facts_of(folder)
    recipe = recipe or facts.get("recipe", DEFAULT)
    stated = facts.get("backbone", backbones.default("image"))
    if spec is None and backbones.stated_fingerprint(stated) is None:
        raise FileError(
            f"{folder} uses the backbone {stated}, which has to be loaded before it can be trusted; if you want that, "
            f"start the page with it: imprint serve --folder {folder} --backbone {stated}."
        )
    spec = spec or stated
    method = Method.of(**recipes.describe(recipe).parts())
    project = Project(folder, spec, network or backbones.load(spec, threads=threads), method)
    for name, value in (("backbone", spec), ("recipe", recipe), ("modality", project.modality.name)):
        if project.store.fact(name) != value:
            project.store.state(name, value)
    return project


def folder_for(source: Path | None, kind: str | None = None) -> Path:
    """The default folder of a project: its name depends on the content of a model file, or on the path of a folder.

    Without a source, it is always the same one, unless that has another modality than `kind`.
    """
    base = home() / "serve"
    if source is None:
        former = base / "classroom"  # its name in earlier versions
        folder = former if former.is_dir() else base / "project"
        return (
            folder if facts_of(folder).get("modality", kind) in (kind, None) or not kind else base / f"project-{kind}"
        )
    if source.is_dir():
        return base / f"{source.resolve().name}-{digest([os.fsencode(source.resolve())])[:12]}"
    return base / f"{source.stem}-{digest_of(source.read_bytes())[:12]}"


def _import_folder(
    project: Project, folder: Path, tree: bool | None, progress: Callable[[int, int], object]
) -> list[str]:
    """Add every file of a folder per class, once; an interrupted import is continued."""
    if project.store.fact(IMPORT) != UNFINISHED and project.history.revision:
        return []
    split = load_folder(folder, "train", tree=tree)
    if split.modality != project.modality.name or not isinstance(split.inputs, FileInputs):
        plural = modality(split.modality).plural
        raise ParameterError(
            f"{folder} holds {plural}, and {project.backbone.record.name} reads {project.modality.plural}; choose "
            f"another backbone with --backbone."
        )
    project.store.state(IMPORT, UNFINISHED)
    inputs, group, sentences = split.inputs, f"import {folder.name}", list(split.omissions)

    def add(i: int, label: str) -> CommitOutcome:
        raw, name = inputs.raw(i), Path(inputs.names[i]).name
        return project.add(raw, project.embed(raw, name).result(), label, name, group).result()

    for label in dict.fromkeys(split.labels.tolist()):  # creates the classes in order: threads add the files
        if label not in project.history.labelled.classes:
            project.change({"do": "create", "label": label, "group": group}).result()
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
