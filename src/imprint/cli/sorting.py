"""Files copied or linked into folders, such as one per predicted class."""

import filecmp
import os
import shutil
from collections.abc import Iterable
from itertools import count
from pathlib import Path

from imprint.core.errors import reporting
from imprint.core.tree import path_of


def copy_files(files: Iterable[tuple[str, Path]], link: bool = False) -> int:
    """Copy or link files into the given folders; return how many are new there. Never overwrites a file.

    A file whose folder has an identical one is left out; if a different one has its name, a number is appended.
    """
    new = 0
    for name, folder in files:
        source = Path(name)
        with reporting("write", folder):
            folder.mkdir(parents=True, exist_ok=True)
            for target in (folder / (f"{source.stem}-{n}{source.suffix}" if n else source.name) for n in count()):
                if target.exists() and filecmp.cmp(source, target, shallow=False):
                    break
                if not os.path.lexists(target):
                    os.symlink(source.resolve(), target) if link else _copy(source, target)
                    new += 1
                    break
    return new


def folder_of(root: Path, label: object) -> Path:
    """The folder of a class; the label `animal/cat` of a tree is the folder `cat` in `animal`."""
    return root.joinpath(*(folder_name(str(part)) for part in path_of(label)))


def folder_name(label: str) -> str:
    """A label, which may come from any file, as the name of one folder.

    >>> folder_name("cat"), folder_name("../etc"), folder_name(".."), folder_name("a/b")
    ('cat', '.._etc', '__', 'a_b')
    """
    name = "".join("_" if c in '/\\\\:*?"<>|' or not c.isprintable() else c for c in label).strip() or "_"
    return "_" * len(name) if set(name) == {"."} else name[:200]


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
