"""All projects of the user, one folder each, and the one that is open."""

import os
import secrets
import shutil
import time
from contextlib import closing
from pathlib import Path
from threading import Lock
from typing import Any

from imprint import backbones
from imprint.core.errors import FileError, ParameterError
from imprint.core.family import unknown
from imprint.core.files.atomic import exclusive, home
from imprint.serve.labels import clean_label
from imprint.serve.project import Project, in_use
from imprint.serve.start import opened
from imprint.serve.store import PROJECT, ProjectStore, copy_project, facts_of, project_name

DELETED = ".deleted"
DAYS = 30
"""Days for which a deleted project can be restored."""
KINDS = ("image", "text", "sound")
CHANGES = ("create", "open", "rename", "duplicate", "delete", "restore")


class Projects:
    """The folders below `IMPRINT_HOME/serve`, and the one with which the server was started. One project is open."""

    def __init__(self, project: Project, label_studio: bool = False):
        """With `label_studio`, the server is also a backend of Label Studio, and its project stays open."""
        self.project, self.label_studio, self._lock, self.base = project, label_studio, Lock(), home() / "serve"
        self.first = project.folder
        """The folder with which the server was started; it holds the token, and may be outside `base`."""

    def as_json(self) -> dict[str, Any]:
        """The projects, and the deleted ones that can be restored; the last changed first."""
        for folder in self._folders(DELETED).values():
            if time.time() - folder.stat().st_mtime > DAYS * 86400:
                shutil.rmtree(folder, ignore_errors=True)
        shown, first = self.project.folder.name, self.first.name
        projects = _described(self._folders())
        return {
            "projects": [{**one, "open": one["id"] == shown, "first": one["id"] == first} for one in projects],
            "deleted": _described(self._folders(DELETED)),
            "kinds": KINDS,
        }

    def change(self, entry: dict[str, Any]) -> dict[str, Any]:
        """Create, open, rename, duplicate, delete or restore a project; returns the projects after that."""
        if self.label_studio:
            raise ParameterError("A server for Label Studio keeps its project; start another without --label-studio.")
        with self._lock:
            match entry.get("do"):
                case "create":
                    kind, name = entry.get("kind", KINDS[0]), clean_label(entry.get("name"))
                    if kind not in KINDS:
                        raise unknown("kind", kind, KINDS)
                    self._open(self._new_folder(), backbones.default(kind))
                    self.project.store.state({"name": name})
                case "open":
                    self._open(self._named(entry))
                case "rename":
                    with closing(ProjectStore(self._named(entry))) as store:
                        store.state({"name": clean_label(entry.get("name"))})
                case "duplicate":
                    folder, target = self._named(entry), self._new_folder()
                    copy_project(folder, target)
                    with closing(ProjectStore(target)) as store:
                        store.state({"name": f"{project_name(folder, store.facts())[:80]} (copy)"})
                case "delete":
                    self._delete(self._named(entry))
                case "restore":
                    folder = self._named(entry, DELETED)
                    os.replace(folder, self.base / folder.name)
                case kind:
                    raise unknown("change of projects", kind, CHANGES)
        return self.as_json()

    def _open(self, folder: Path, spec: str | None = None) -> None:
        if folder != self.project.folder:
            before, self.project = self.project, opened(folder, spec)
            before.close()

    def _delete(self, folder: Path) -> None:
        if folder == self.project.folder:
            raise ParameterError("This project is open; open another one, then delete it.")
        if folder == self.first:
            raise ParameterError("The server started with this project; delete it after a start with another one.")
        with exclusive(folder / "lock", lambda: in_use(folder)):
            os.utime(folder)
        (self.base / DELETED).mkdir(exist_ok=True)
        os.replace(folder, self.base / DELETED / folder.name)

    def _new_folder(self) -> Path:
        return self.base / f"project-{secrets.token_hex(4)}"

    def _folders(self, below: str = "") -> dict[str, Path]:
        base = self.base / below
        folders = {f.name: f for f in base.iterdir() if (f / PROJECT).is_file()} if base.is_dir() else {}
        return folders if below else {**folders, self.first.name: self.first}

    def _named(self, entry: dict[str, Any], below: str = "") -> Path:
        for name, folder in self._folders(below).items():
            if name == entry.get("id"):
                return folder
        raise ParameterError("There is no such project; it may have been deleted.")


def _described(folders: dict[str, Path]) -> list[dict[str, Any]]:
    """What the page shows of projects, the last changed first; a damaged one is reported when it is opened."""
    entries = []
    for key, folder in folders.items():
        try:
            facts = facts_of(folder)
        except FileError:
            facts = {}
        name, changed = project_name(folder, facts), max(f.stat().st_mtime for f in folder.glob(f"{PROJECT}*"))
        entries.append({"id": key, "name": name, "kind": facts.get("modality"), "changed": changed})
    return sorted(entries, key=lambda entry: -float(entry["changed"]))
