"""All projects of the user, one folder each, and the one that is open."""

import os
import secrets
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from imprint import backbones
from imprint.core.errors import FileError, ParameterError
from imprint.core.family import unknown
from imprint.core.files.atomic import exclusive, home
from imprint.serve.labels import clean_label
from imprint.serve.project import Project, in_use
from imprint.serve.start import opened
from imprint.serve.store import PROJECT, copy_project, facts_of, project_name, state_fact

DELETED = ".deleted"
DAYS = 30
"""Days for which a deleted project can be restored."""
KINDS = ("image", "text", "sound")


class Projects:
    """An ASGI application that passes each request to the application of the project that is open at that time."""

    def __init__(self, project: Project, application_of: Callable[[Project, "Projects"], ASGIApp]):
        self._application_of, self._lock, self.base = application_of, Lock(), home() / "serve"
        self.first = project.folder
        """The folder with which the server was started; it holds the token, and may be outside `base`."""
        self._show(project)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.app(scope, receive, send)

    def as_json(self) -> dict[str, Any]:
        """The projects, and the deleted ones that can be restored; the last changed first."""
        for folder in self._folders(DELETED).values():
            if time.time() - folder.stat().st_mtime > DAYS * 86400:
                shutil.rmtree(folder, ignore_errors=True)
        shown = self.project.folder.name
        return {
            "projects": [
                {**entry, "open": entry["id"] == shown, "first": entry["id"] == self.first.name}
                for entry in _described(self._folders())
            ],
            "deleted": _described(self._folders(DELETED)),
            "kinds": KINDS,
        }

    def change(self, entry: dict[str, Any]) -> dict[str, Any]:
        """Create, open, rename, duplicate, delete or restore a project; returns the projects after that."""
        kind = entry.get("do")
        changes = {
            "create": self._create,
            "open": self._open,
            "rename": self._rename,
            "duplicate": self._duplicate,
            "delete": self._delete,
            "restore": self._restore,
        }
        if not isinstance(kind, str) or kind not in changes:
            raise unknown("change of projects", kind, changes)
        with self._lock:
            changes[kind](entry)
        return self.as_json()

    def close(self) -> None:
        """Close the open project."""
        self.project.close()

    def _show(self, project: Project) -> None:
        self.project, self.app = project, self._application_of(project, self)

    def _exchange(self, project: Project) -> None:
        before = self.project
        self._show(project)
        before.close()

    def _create(self, entry: dict[str, Any]) -> None:
        kind, name = entry.get("kind", KINDS[0]), clean_label(entry.get("name"))
        if kind not in KINDS:
            raise unknown("kind", kind, KINDS)
        project = opened(self._new_folder(), backbones.default(kind))
        project.store.state("name", name)
        self._exchange(project)

    def _open(self, entry: dict[str, Any]) -> None:
        folder = self._named(entry)
        if folder != self.project.folder:
            self._exchange(opened(folder))

    def _rename(self, entry: dict[str, Any]) -> None:
        state_fact(self._named(entry), "name", clean_label(entry.get("name")))

    def _duplicate(self, entry: dict[str, Any]) -> None:
        folder, target = self._named(entry), self._new_folder()
        copy_project(folder, target)
        name = next(iter(_described({"": folder})))["name"]
        state_fact(target, "name", f"{name[:80]} (copy)")

    def _delete(self, entry: dict[str, Any]) -> None:
        folder = self._named(entry)
        if folder == self.project.folder:
            raise ParameterError("This project is open; open another one, then delete it.")
        if folder == self.first:
            raise ParameterError("The server started with this project; delete it after a start with another one.")
        with exclusive(folder / "lock", lambda: in_use(folder)):
            os.utime(folder)
        (self.base / DELETED).mkdir(exist_ok=True)
        os.replace(folder, self.base / DELETED / folder.name)

    def _restore(self, entry: dict[str, Any]) -> None:
        folder = self._named(entry, DELETED)
        os.replace(folder, self.base / folder.name)

    def _new_folder(self) -> Path:
        return self.base / f"project-{secrets.token_hex(4)}"

    def _folders(self, below: str = "") -> dict[str, Path]:
        base = self.base / below
        folders = {f.name: f for f in base.iterdir() if (f / PROJECT).is_file()} if base.is_dir() else {}
        return folders if below else {**folders, self.first.name: self.first}

    def _named(self, entry: dict[str, Any], below: str = "") -> Path:
        folders, name = self._folders(below), entry.get("id")
        if not isinstance(name, str) or name not in folders:
            raise ParameterError("There is no such project; it may have been deleted.")
        return folders[name]


def _described(folders: dict[str, Path]) -> list[dict[str, Any]]:
    """What the page shows of projects, the last changed first; a damaged one is reported when it is opened."""
    entries = []
    for key, folder in folders.items():
        try:
            facts = facts_of(folder)
        except FileError:
            facts = {}
        changed = max(f.stat().st_mtime for f in folder.glob(f"{PROJECT}*"))
        name = project_name(folder, facts.get("name"))
        entries.append({"id": key, "name": name, "kind": facts.get("modality"), "changed": changed})
    return sorted(entries, key=lambda entry: -float(entry["changed"]))
