"""Files sorted into a folder per predicted class."""

import filecmp
import os
import shutil
from collections.abc import Iterable
from itertools import count
from pathlib import Path

from imprint.core.errors import FileError
from imprint.core.tree import path_of


def sort_into(folder: Path, files: Iterable[tuple[str, object]], link: bool) -> int:
    """Copy or link every file into the sub-folder of its label; return how many. Nothing is ever overwritten.

    The label `animal/cat` of a tree is the folder `cat` in `animal`.

    An identical file that is already there is left alone; a different one of the same name gets a number.
    """
    done = 0
    try:
        for name, label in files:
            source = Path(name)
            target = folder.joinpath(*(folder_name(str(part)) for part in path_of(label)))
            target.mkdir(parents=True, exist_ok=True)
            done += _put(source, target, link)
    except OSError as e:
        raise FileError(f"Cannot write {folder}: {e.strerror or e}.") from None
    return done


def copy_files(folder: Path, files: Iterable[str]) -> int:
    """Copy files into one folder and return how many were not there before. Nothing is ever overwritten."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return sum(_put(Path(name), folder, link=False) for name in files)
    except OSError as e:
        raise FileError(f"Cannot write {folder}: {e.strerror or e}.") from None


def folder_name(label: str) -> str:
    """A label as the name of one folder, wherever it came from.

    >>> folder_name("cat"), folder_name("../etc"), folder_name(".."), folder_name("a/b")
    ('cat', '.._etc', '__', 'a_b')
    """
    name = "".join("_" if c in '/\\\\:*?"<>|' or not c.isprintable() else c for c in label).strip() or "_"
    return "_" * len(name) if set(name) == {"."} else name[:200]


def _put(source: Path, folder: Path, link: bool) -> int:
    for n in count():
        target = folder / (source.name if n == 0 else f"{source.stem}-{n}{source.suffix}")
        if target.is_symlink() or target.exists():
            if target.exists() and filecmp.cmp(source, target, shallow=False):
                return 0
            continue
        if link:
            os.symlink(source.resolve(), target)
        else:
            _copy(source, target)
        return 1
    return 0


def _copy(source: Path, target: Path) -> None:
    """Copy a file, completely or not at all, and never over another one."""
    partial = target.with_name(f".{target.name}.imprint-partial")
    shutil.copy2(source, partial)
    try:
        os.link(partial, target)
    except (OSError, AttributeError):  # FAT and exFAT have no hard links
        with open(partial, "rb") as content, open(target, "xb") as out:
            shutil.copyfileobj(content, out)
        shutil.copystat(partial, target)
    finally:
        partial.unlink(missing_ok=True)
