"""Which files a person means, and whether they can be what is asked of them."""

import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from imprint.core.errors import FileError
from imprint.core.files import container, outputs
from imprint.core.files.home import home


def words(*command: object) -> str:
    """A command as a shell takes it, quoted where a path needs it."""
    parts = [str(word) for word in command]
    return subprocess.list2cmdline(parts) if sys.platform == "win32" else shlex.join(parts)


def check_model(path: Path) -> None:
    """Refuse a model file that is not there, and say how to make one."""
    if not path.exists():
        command = words("imprint", "fit", "FOLDER", "-o", path)
        raise FileError(f"{path}: there is no such file; a model is made by: {command}.")


def check_place(path: Path) -> None:
    """Refuse a place where no file can go, before any work is done."""
    if not path.parent.is_dir():
        raise FileError(f"Cannot write {path}: there is no folder {path.parent}.")
    if path.is_dir():
        raise FileError(f"Cannot write {path}: it is a folder; name a file in it.")
    if path.exists() and not path.is_file():
        raise FileError(f"Cannot write {path}: it is no ordinary file.")


def check_page(path: Path) -> None:
    """Refuse to write a page over anything but a page of imprint."""
    check_place(path)
    outputs.check_page(path)


def check_output(path: Path) -> None:
    """Refuse to write a model over anything but a model."""
    check_place(path)
    if path.exists() and path.stat().st_size:
        try:
            container.read(path)
        except FileError:
            raise FileError(f"Cannot write {path}: it exists and is no imprint model; choose another name.") from None


def check_home(optional: bool = True) -> None:
    """Refuse a home that cannot be written to, and say what to do instead."""
    folder = home()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return
    except OSError as e:
        instead = ", or keep nothing with --no-cache" if optional else ""
        reason = f"{e.strerror}; set IMPRINT_HOME to a folder of your own{instead}"
        raise FileError(f"Cannot keep embeddings in {folder}: {reason}.") from None
