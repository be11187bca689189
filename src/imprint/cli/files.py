"""Files that a command reads and writes: checks before any work is done, and the
folders of classes.
"""

import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from imprint.core.errors import FileError, ParameterError
from imprint.core.files.atomic import expanded, home
from imprint.core.files.copies import folder_name


def quoted(*command: object) -> str:
    """A command line, quoted for the shell."""
    words = [str(word) for word in command]
    return (
        subprocess.list2cmdline(words) if sys.platform == "win32" else shlex.join(words)
    )


def check_csv(command: str, arguments: Sequence[str]) -> None:
    """Refuse `--csv FILE`: the option takes no file."""
    for word in arguments:
        if word.lower().endswith(".csv") and not expanded(word).exists():
            raise ParameterError(
                f"--csv takes no file name: imprint {command} ... --csv > {word}."
            )


def check_model(path: Path | None) -> Path | None:
    """Refuse a model file that does not exist, and name the command that writes one."""
    if path is not None and not path.exists():
        command = quoted("imprint", "fit", "FOLDER", "-o", path)
        raise FileError(f"{path}: no such file; to fit a model: {command}.")
    return path


def check_writable(
    path: Path, replaceable: Callable[[Path], object] | None = None, otherwise: str = ""
) -> None:
    """Refuse a path at which no file can be written, and an existing file that is not
    `replaceable`.

    `replaceable` returns a false value or raises `FileError` for such a file, and
    `otherwise` says why it stays.
    """
    if not path.parent.is_dir():
        raise FileError(f"Cannot write {path}: there is no folder {path.parent}.")
    if path.is_dir():
        raise FileError(f"Cannot write {path}: it is a folder; name a file in it.")
    if path.exists() and not path.is_file():
        raise FileError(f"Cannot write {path}: it is not an ordinary file.")
    if replaceable is None or not path.exists() or not path.stat().st_size:
        return
    with suppress(FileError):
        if replaceable(path):
            return
    raise FileError(
        f"Cannot write {path}: it exists and {otherwise}; choose another name."
    )


def check_page(path: Path | None) -> Path | None:
    """Refuse to write a page over anything but a page of imprint."""
    if path is not None:
        from imprint.evaluation.page.document import is_page

        check_writable(path, is_page, "is not a page of imprint")
    return path


def check_home(advice: str = ", or disable the cache with --no-cache") -> None:
    """Refuse a cache folder that cannot be written to, and say what to do instead."""
    folder = home()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return
    except OSError as e:
        reason = f"{e.strerror}; set IMPRINT_HOME to another folder{advice}"
        raise FileError(f"Cannot cache embeddings in {folder}: {reason}.") from None


def class_folder(label: object) -> tuple[str, ...]:
    """The names of the folder of a class, from the top: `animal` and `cat` for the
    label `animal/cat` of a tree.
    """
    from imprint.core.tree import path_of  # loads NumPy

    return tuple(folder_name(str(part)) for part in path_of(label))
