"""Checks of the files that a command reads and writes, before any work is done."""

import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from imprint.core.errors import FileError, ParameterError
from imprint.core.files import container
from imprint.core.files.atomic import home


def words(*command: object) -> str:
    """A command line, quoted for the shell."""
    parts = [str(word) for word in command]
    return subprocess.list2cmdline(parts) if sys.platform == "win32" else shlex.join(parts)


def check_csv(command: str, arguments: Sequence[str]) -> None:
    """Refuse `--csv FILE`: the option takes no file."""
    for word in arguments:
        if word.lower().endswith(".csv") and not Path(word).exists():
            raise ParameterError(f"--csv takes no file name: imprint {command} ... --csv > {word}.")


def check_model(path: Path) -> None:
    """Refuse a model file that does not exist, and say how to write one."""
    if not path.exists():
        command = words("imprint", "fit", "FOLDER", "-o", path)
        raise FileError(f"{path}: no such file; to fit a model: {command}.")


def check_place(path: Path) -> None:
    """Refuse a path at which no file can be written."""
    if not path.parent.is_dir():
        raise FileError(f"Cannot write {path}: there is no folder {path.parent}.")
    if path.is_dir():
        raise FileError(f"Cannot write {path}: it is a folder; name a file in it.")
    if path.exists() and not path.is_file():
        raise FileError(f"Cannot write {path}: it is not an ordinary file.")


def check_page(path: Path) -> None:
    """Refuse to write a page over anything but a page of imprint."""
    from imprint.evaluation.page.document import is_page

    check_place(path)
    if path.exists() and path.stat().st_size and not is_page(path):
        raise FileError(f"Cannot write {path}: it exists and is not a page of imprint; choose another name.")


def check_output(path: Path) -> None:
    """Refuse to write a model over anything but a model."""
    check_place(path)
    if path.exists() and path.stat().st_size:
        try:
            container.read(path)
        except FileError:
            raise FileError(
                f"Cannot write {path}: it exists and is not an imprint model; choose another name."
            ) from None


def check_home(optional: bool = True) -> None:
    """Refuse a cache folder that cannot be written to, and say what to do instead."""
    folder = home()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return
    except OSError as e:
        instead = ", or disable the cache with --no-cache" if optional else ""
        reason = f"{e.strerror}; set IMPRINT_HOME to another folder{instead}"
        raise FileError(f"Cannot cache embeddings in {folder}: {reason}.") from None
