"""Opening a project for `imprint serve`, and importing the model file or folder that it was started with."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from imprint import backbones, recipes
from imprint.backbones import Backbone
from imprint.core.digest import digest
from imprint.core.errors import FileError, ParameterError, UnreadableInput
from imprint.core.files.atomic import home
from imprint.datasets import Split
from imprint.datasets.files import FileInputs
from imprint.datasets.folder import load_folder
from imprint.imprinter import Imprinter
from imprint.imprinter.model import DEFAULT
from imprint.method import Method
from imprint.modalities import modality
from imprint.serve.imported import WITHOUT_BACKBONE
from imprint.serve.project import Project
from imprint.serve.store import digest_of, facts_of

AT_ONCE = 16
"""Number of inputs that are decoded and added at the same time."""
IMPORT = "import"  # the fact that holds the progress of the first import
UNFINISHED, FINISHED = "unfinished", "finished"
Report = Callable[[int, int], object]


def started(
    source: Path | None,
    folder: Path | None = None,
    backbone: str | None = None,
    recipe: str | None = None,
    threads: int | None = None,
    tree: bool | None = None,
    progress: Report = lambda done, total: None,
) -> tuple[Project, list[str]]:
    """The project of a model file, of a folder of pictures, or, without a `source`, the default one.

    An existing project is continued, and so is an interrupted import. Also returns sentences about the folder that was
    imported: how it was read, and unreadable files.
    """
    split = model = network = None
    if source is not None and source.is_dir():
        split = load_folder(source, "train", tree=tree)
        backbone = backbone or backbones.default(split.modality)
    elif source is not None:
        model = Imprinter.load(source, backbone=backbone, threads=threads)
        if not modality(model.modality).needs_backbone:
            raise FileError(f"{source} {WITHOUT_BACKBONE}")
        backbone, network = model.embedder.spec, model.backbone
    load = partial(backbones.load, threads=threads)
    if backbone is not None:
        network = network or load(backbone)
    folder = folder or folder_for(source, network.modality if network else None)
    project = opened(folder, backbone, recipe, (lambda _: network) if network else load)
    try:
        facts, is_new = project.store.facts(), not project.history.revision
        if source is not None and "name" not in facts:
            project.store.state({"name": source.resolve().stem})
        if source is not None and model is not None and is_new:
            project.import_model(source.read_bytes(), str(source)).result()
        if split is not None and (is_new or facts.get(IMPORT) == UNFINISHED):
            return project, _import_folder(project, split, progress)
    except BaseException:
        project.close()
        raise
    return project, []


def opened(
    folder: Path, spec: str | None = None, recipe: str | None = None, load: Callable[[str], Backbone] = backbones.load
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
    project = Project(folder, spec, load(spec), method)
    current = {"backbone": spec, "recipe": recipe, "modality": project.modality.name}
    if not current.items() <= facts.items():
        project.store.state(current)
    return project


def folder_for(source: Path | None, kind: str | None = None) -> Path:
    """The default folder of a project: its name depends on the content of a model file, or on the path of a folder.

    Without a source, it is always the same one, unless that has another modality than `kind`.
    """
    base = home() / "serve"
    if source is None:
        former = base / "classroom"  # its name in earlier versions
        folder = former if former.is_dir() else base / "project"
        is_other = kind and facts_of(folder).get("modality", kind) != kind
        return base / f"project-{kind}" if is_other else folder
    if source.is_dir():
        return base / f"{source.resolve().name}-{digest([os.fsencode(source.resolve())])[:12]}"
    return base / f"{source.stem}-{digest_of(source.read_bytes())[:12]}"


def _import_folder(project: Project, split: Split, progress: Report) -> list[str]:
    """Add every file of a folder per class; those that were added before an interruption are recognised."""
    inputs, group, sentences = split.inputs, f"import {split.origin}", list(split.omissions)
    if split.modality != project.modality.name or not isinstance(inputs, FileInputs):
        raise ParameterError(
            f"{split.origin} holds {split.kind.plural}, and {project.backbone.record.name} reads "
            f"{project.modality.plural}; choose another backbone with --backbone."
        )
    project.store.state({IMPORT: UNFINISHED})

    def add(i: int, label: str) -> None:
        raw, name = inputs.raw(i), Path(inputs.names[i]).name
        project.add(raw, project.embed(raw, name).result(), label, name, group).result()

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
    project.store.state({IMPORT: FINISHED})
    return sentences
