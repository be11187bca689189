"""The projects of the user, one folder each: starting with one, and the one that is
open.
"""

import os
import secrets
import shutil
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import cache, partial
from pathlib import Path
from threading import Lock
from typing import Any

from imprint import backbones, recipes
from imprint.backbones import Backbone
from imprint.core.arrays import digest
from imprint.core.errors import FileError, ParameterError, UnreadableInput, unknown
from imprint.core.files.atomic import exclusive, home
from imprint.datasets import Split
from imprint.datasets.files import FileInputs
from imprint.datasets.folder import load_folder
from imprint.imprinter import Imprinter
from imprint.imprinter.model import DEFAULT_RECIPE
from imprint.method import Method
from imprint.modalities import modality
from imprint.serve.imported import WITHOUT_BACKBONE
from imprint.serve.labelled import clean_label
from imprint.serve.project import Project, in_use
from imprint.serve.store import PROJECT, ProjectStore, copy_project, digest_of, facts_of

TRASH = ".deleted"  # the folder of deleted projects
# a file whose time is that of the deletion; the time of the folder changes when it is
# listed
DELETED = "deleted"
TRASH_DAYS = 30  # days for which a deleted project can be restored
KINDS = ("image", "text", "sound")
# number of files of a folder that are decoded and added at the same time
IMPORT_THREADS = 16
# a fact about a project, and its value until a folder is imported
IMPORT, UNFINISHED = "import", "unfinished"
# takes the number of files that were added, and of all
Report = Callable[[int, int], object]
CHANGES = ("create", "open", "rename", "duplicate", "delete", "restore")


def start_project(
    source: Path | None,
    folder: Path | None = None,
    backbone: str | None = None,
    recipe: str | None = None,
    threads: int | None = None,
    tree: bool | None = None,
    progress: Report = lambda done, total: None,
) -> tuple[Project, list[str]]:
    """The project of a model file, of a folder of images, or, without a `source`, the
    default one.

    An existing project is continued, and so is an interrupted import. Also returns
    sentences about an imported folder.
    """
    splits = list[Split]()
    if source is not None and source.is_dir():
        splits = [load_folder(source, "train", tree=tree)]
        if "test" in splits[0].parts:
            splits.append(load_folder(source, "test", tree=tree))
        backbone = backbone or backbones.default(splits[0].modality)
    elif source is not None:
        model = Imprinter.load(source, backbone=backbone, threads=threads)
        if not modality(model.modality).needs_backbone:
            raise FileError(f"{source} {WITHOUT_BACKBONE}")
        backbone = model.embedder.spec
    load = cache(partial(backbones.load, threads=threads))
    folder = folder or _folder_for(
        source, load(backbone).modality if backbone else None
    )
    project, sentences = open_project(folder, backbone, recipe, load), list[str]()
    try:
        is_new = not project.history.revision
        if source is not None and is_new:
            project.store.set_facts({"name": source.resolve().stem})
        if splits and (is_new or project.store.facts().get(IMPORT) == UNFINISHED):
            project.store.set_facts({IMPORT: UNFINISHED})
            for split in splits:
                sentences += import_folder(
                    project, split, progress, held_out=split is not splits[0]
                )
            project.store.set_facts({IMPORT: "finished"})
        elif source is not None and is_new:
            project.import_model(source.read_bytes(), str(source)).result()
    except BaseException:
        project.close()
        raise
    return project, sentences


def open_project(
    folder: Path,
    spec: str | None = None,
    recipe: str | None = None,
    load: Callable[[str], Backbone] = backbones.load,
) -> Project:
    """The project in a folder, with its stored backbone and recipe unless others are
    given.
    """
    facts = facts_of(folder)
    recipe = recipe or facts.get("recipe", DEFAULT_RECIPE)
    stated = facts.get("backbone", backbones.default("image"))
    if spec is None and backbones.stated_fingerprint(stated) is None:
        raise FileError(
            f"{folder} uses the backbone {stated}, which has to be loaded before it can"
            " be trusted; if you want that, start the page with it: imprint serve"
            f" --folder {folder} --backbone {stated}."
        )
    spec = spec or stated
    backbone = load(spec)
    blocks = backbone.record.block_widths
    method = Method.of(**recipes.describe(recipe).parts(), blocks=blocks or None)
    project = Project(folder, spec, backbone, method)
    current = {"backbone": spec, "recipe": recipe, "modality": project.modality.name}
    if not current.items() <= facts.items():
        project.store.set_facts(current)
    return project


def _folder_for(source: Path | None, kind: str | None = None) -> Path:
    """The default folder of a project: its name depends on the content of a model file,
    or on the path of a folder.

    Without a source, it is always the same one, unless that has another modality than
    `kind`.
    """
    base = home() / "serve"
    if source is None:
        former = base / "classroom"  # its name in earlier versions
        folder = former if former.is_dir() else base / "project"
        is_other = kind and facts_of(folder).get("modality", kind) != kind
        return base / f"project-{kind}" if is_other else folder
    if source.is_dir():
        return (
            base
            / f"{source.resolve().name}-{digest([os.fsencode(source.resolve())])[:12]}"
        )
    return base / f"{source.stem}-{digest_of(source.read_bytes())[:12]}"


def import_folder(
    project: Project, split: Split, progress: Report, held_out: bool = False
) -> list[str]:
    """Add every file of a folder per class; those that were added before an
    interruption are recognised.

    Returns sentences about the folder: how it was read, and unreadable files.
    """
    inputs, group = split.inputs, f"import {split.origin}"
    sentences = [*([f"{split.found}."] if split.ignored else []), *split.omissions]
    if split.modality != project.modality.name or not isinstance(inputs, FileInputs):
        raise ParameterError(
            f"{split.origin} holds {split.kind.plural}, and"
            f" {project.backbone.record.name} reads {project.modality.plural}; choose"
            " another backbone with --backbone."
        )

    def add(i: int, label: str) -> None:
        raw, name = inputs.raw(i), Path(inputs.names[i]).name
        project.add(
            raw, project.embed(raw, name).result(), label, name, group, held_out
        ).result()

    # in order: threads add the files
    for label in dict.fromkeys(map(clean_label, split.labels.tolist())):
        if label not in project.history.labelled.classes:
            project.change({"do": "create", "label": label, "group": group}).result()
    with ThreadPoolExecutor(IMPORT_THREADS) as pool:
        futures = [
            pool.submit(add, i, label) for i, label in enumerate(split.labels.tolist())
        ]
        for done, future in enumerate(futures, 1):
            try:
                future.result()
            except UnreadableInput as e:
                sentences.append(str(e))
            progress(done, len(futures))
    return sentences


class Projects:
    """The folders below `IMPRINT_HOME/serve`, and the one with which the server was
    started. One project is open.
    """

    def __init__(self, project: Project, label_studio: bool = False):
        """With `label_studio`, the server is also a backend of Label Studio, and its
        project stays open.
        """
        self.project, self.label_studio, self._lock, self.base = (
            project,
            label_studio,
            Lock(),
            home() / "serve",
        )
        # with which the server was started; it has the token, and may be outside `base`
        self.first = project.folder

    def as_json(self) -> dict[str, Any]:
        """The projects, and the deleted ones that can be restored; the last changed
        first.
        """
        for folder in self._folders(TRASH).values():
            # an earlier version wrote no mark
            mark = folder / DELETED if (folder / DELETED).exists() else folder
            if time.time() - mark.stat().st_mtime > TRASH_DAYS * 86400:
                shutil.rmtree(folder, ignore_errors=True)
        return {
            "projects": self._described(),
            "deleted": self._described(TRASH),
            "kinds": KINDS,
        }

    def change(self, entry: dict[str, Any]) -> dict[str, Any]:
        """Create, open, rename, duplicate, delete or restore a project; returns the
        projects after that.
        """
        if self.label_studio:
            raise ParameterError(
                "A server for Label Studio keeps its project; start another without"
                " --label-studio."
            )
        with self._lock:
            match entry.get("do"):
                case "create":
                    kind, name = (
                        entry.get("kind", KINDS[0]),
                        clean_label(entry.get("name")),
                    )
                    if kind not in KINDS:
                        raise unknown("kind", kind, KINDS)
                    self._open(
                        self.base / f"project-{secrets.token_hex(4)}",
                        backbones.default(kind),
                    )
                    self.project.store.set_facts({"name": name})
                case "open":
                    self._open(self._named(entry))
                case "rename":
                    with closing(ProjectStore(self._named(entry))) as store:
                        store.set_facts({"name": clean_label(entry.get("name"))})
                case "duplicate":
                    folder, target = (
                        self._named(entry),
                        self.base / f"project-{secrets.token_hex(4)}",
                    )
                    copy_project(folder, target)
                    with closing(ProjectStore(target)) as store:
                        store.set_facts(
                            {"name": f"{facts_of(folder)['name'][:80]} (copy)"}
                        )
                case "delete":
                    self._delete(self._named(entry))
                case "restore":
                    _move(self._named(entry, TRASH), self.base)
                case kind:
                    raise unknown("change of projects", kind, CHANGES)
        return self.as_json()

    def _open(self, folder: Path, spec: str | None = None) -> None:
        if folder != self.project.folder:
            before, self.project = self.project, open_project(folder, spec)
            before.close()

    def _delete(self, folder: Path) -> None:
        if folder == self.project.folder:
            raise ParameterError(
                "This project is open; open another one, then delete it."
            )
        if folder == self.first:
            raise ParameterError(
                "The server started with this project; delete it after a start with"
                " another one."
            )
        with exclusive(folder / "lock", lambda: in_use(folder)):
            (folder / DELETED).touch()
        (self.base / TRASH).mkdir(exist_ok=True)
        _move(folder, self.base / TRASH)

    def _folders(self, below: str = "") -> dict[str, Path]:
        base = self.base / below
        folders = (
            {f.name: f for f in base.iterdir() if (f / PROJECT).is_file()}
            if base.is_dir()
            else {}
        )
        return folders if below else {**folders, self.first.name: self.first}

    def _described(self, below: str = "") -> list[dict[str, Any]]:
        """What the page shows of projects, the last changed first; a damaged one is
        reported when it is opened.
        """
        entries = []
        for key, folder in self._folders(below).items():
            try:
                facts = facts_of(folder)
            except FileError:
                facts = {"name": folder.name}
            changed = max(f.stat().st_mtime for f in folder.glob(f"{PROJECT}*"))
            about = {
                "id": key,
                "name": facts["name"],
                "kind": facts.get("modality"),
                "changed": changed,
            }
            entries.append(
                {
                    **about,
                    "open": folder == self.project.folder,
                    "first": folder == self.first,
                }
            )
        return sorted(entries, key=lambda entry: -float(entry["changed"]))

    def _named(self, entry: dict[str, Any], below: str = "") -> Path:
        folder = self._folders(below).get(str(entry.get("id")))
        if folder is None:
            raise ParameterError("There is no such project; it may have been deleted.")
        return folder


def _move(folder: Path, parent: Path) -> None:
    """Move a project into another folder, under a new name if there is one of that
    name.
    """
    target = parent / folder.name
    os.replace(
        folder,
        parent / f"{folder.name}-{secrets.token_hex(4)}" if target.exists() else target,
    )
