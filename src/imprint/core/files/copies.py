"""Copies of files in one folder per class."""

import filecmp
import hashlib
import os
import re
import shutil
import stat
from collections.abc import Iterable, Sequence
from itertools import count
from pathlib import Path

from imprint.core.errors import FileError, reporting
from imprint.core.files.partial import partial_file

# in names of files on Windows, macOS or Linux
FORBIDDEN_CHARACTERS = frozenset('/\\:*?"<>|')
# names of devices on Windows, with any suffix and in upper or lower case
DEVICE = re.compile(
    r"(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9\u00b9\u00b2\u00b3])(\.|$)",
    re.IGNORECASE,
)
# a percent sign that could be mistaken for the beginning of an escaped byte
PERCENT = re.compile(r"%(?=[0-9A-Fa-f]{2})")
# Marks names that do not hold the whole label. No label is escaped to it, because the
# byte 0xFF is not part of any text in UTF-8.
DIGEST_MARK = "%FF"
DIGEST_CHARACTERS = 32  # of SHA-256 in hexadecimal; 128 bits
# of one name; file systems allow 255, and the rest is for the suffixes of archives
MAX_NAME_BYTES = 200


def folder_name(label: str) -> str:
    """A label, which may come from any file, as the name of one folder.

    Different labels have different names. Characters that some system does not allow in
    a name are escaped as in addresses, `a:b` to `a%3Ab`. Of a label that is too long,
    the name holds the beginning and a digest.
    """
    escaped = PERCENT.sub("%25", label)
    characters = [c if _is_portable(c) else _escape(c) for c in escaped]
    # A leading dot hides a folder; Windows drops spaces and dots at the end.
    if characters and (characters[0] in ". " or DEVICE.match(label)):
        characters[0] = _escape(characters[0])
    if characters and characters[-1] in ". ":
        characters[-1] = _escape(characters[-1])
    name = "".join(characters)
    if name and len(os.fsencode(name)) <= MAX_NAME_BYTES:
        return name
    digest = hashlib.sha256(label.encode("utf-8", "surrogatepass")).hexdigest()
    suffix = DIGEST_MARK + digest[:DIGEST_CHARACTERS] if label else DIGEST_MARK
    return _beginning(characters, MAX_NAME_BYTES - len(suffix)) + suffix


def _is_portable(character: str) -> bool:
    """Whether every system allows the character in a name, and this one can write
    it.
    """
    if character in FORBIDDEN_CHARACTERS or not character.isprintable():
        return False
    try:
        os.fsencode(character)
    except UnicodeEncodeError:  # in a locale without Unicode
        return False
    return True


def _escape(character: str) -> str:
    raw = character.encode("utf-8", "surrogatepass")
    return "".join(f"%{byte:02X}" for byte in raw)


def _beginning(characters: Sequence[str], size: int) -> str:
    """As many of the escaped characters as fit into so many bytes."""
    beginning = ""
    for character in characters:
        if len(os.fsencode(beginning + character)) > size:
            break
        beginning += character
    return beginning


def copy_files(
    root: Path, files: Iterable[tuple[str, Sequence[str]]], *, link: bool = False
) -> int:
    """Copy or link files into folders below `root`.

    No file is overwritten, and no link below `root` is followed. A file whose folder
    has an identical one is left out; if a different one has its name, a number is
    appended. Each copy is complete or does not exist.

    Parameters
    ----------
    root : Path
        The folder for all copies. It may be a link.
    files : iterable of (str, sequence of str)
        The path of each file, and the names of its folder below `root`, from the top.
    link : bool
        Whether to create symbolic links instead of copies.

    Returns
    -------
    int
        The number of new files.
    """
    files = list(files)
    folders = _make_folders(root, {tuple(names) for _, names in files})
    new = 0
    for name, names in files:
        folder = folders[tuple(names)]
        with reporting("write", folder):
            new += _place(Path(name), folder, link)
    return new


def _make_folders(
    root: Path, names: Iterable[tuple[str, ...]]
) -> dict[tuple[str, ...], Path]:
    """The folders below `root`; one that is a link, or the same as another, is refused.

    A file system that does not distinguish upper and lower case would merge two
    classes.
    """
    folders: dict[tuple[str, ...], Path] = {}
    path_by_file: dict[tuple[int, int], Path] = {}
    for path in sorted(names):
        folder = root
        with reporting("write", root.joinpath(*path)):
            folder.mkdir(parents=True, exist_ok=True)
            for name in path:
                folder = folder / name
                _make_folder(folder)
            status = folder.stat()
        other = path_by_file.setdefault((status.st_dev, status.st_ino), folder)
        if other != folder:
            raise FileError(
                f"Cannot write {folder}: this file system does not distinguish it from"
                f" {other}; rename one of the classes."
            )
        folders[path] = folder
    return folders


def _make_folder(folder: Path) -> None:
    """Make a folder unless it exists; a link to a folder is refused."""
    try:
        folder.mkdir()
    except FileExistsError:
        is_folder = stat.S_ISDIR(folder.lstat().st_mode)
        # a kind of link that only Windows has, known to Python 3.12 and newer
        is_junction = getattr(os.path, "isjunction", lambda _: False)
        if not is_folder or is_junction(folder):
            kind = "a link" if is_folder or folder.is_symlink() else "not a folder"
            raise FileError(
                f"Cannot write {folder}: it is {kind}; remove it or choose another"
                " folder."
            ) from None


def _place(source: Path, folder: Path, link: bool) -> bool:
    """Copy or link a file into a folder; False if the folder has an identical file."""
    for number in count():
        name = f"{source.stem}-{number}{source.suffix}" if number else source.name
        target = folder / name
        if target.exists() and filecmp.cmp(source, target, shallow=False):
            return False
        if os.path.lexists(target):
            continue
        try:
            if link:
                os.symlink(source.resolve(), target)
            else:
                _copy(source, target)
        except FileExistsError:  # another process was faster
            continue
        return True
    raise AssertionError  # `count` does not end


def _copy(source: Path, target: Path) -> None:
    """Copy a file with its times and permissions, completely or not at all.

    Raises FileExistsError if `target` exists.
    """

    def publish(partial: Path) -> None:
        shutil.copystat(source, partial)
        try:
            os.link(partial, target)
        except FileExistsError:
            raise
        except (OSError, AttributeError):  # FAT and exFAT have no hard links
            # reserves the name; another process cannot create it any more
            os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
            os.replace(partial, target)

    with open(source, "rb") as content, partial_file(target, publish) as out:
        shutil.copyfileobj(content, out)
