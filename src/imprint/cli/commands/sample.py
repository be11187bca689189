"""Write a small labelled data set to try imprint with.

KIND is photos, messages or series. DIR, a new or an empty folder, gets a train and a
test part for `imprint fit` and `imprint evaluate`, and more of another class to add
later.
"""

from pathlib import Path

from typer import Argument

from imprint.cli import files, options, terminal
from imprint.datasets.samples import kinds, write_sample

KINDS = kinds()


def command(
    kind: str = Argument(
        ...,
        metavar="KIND",
        help="What to write: photos, messages or series.",
        autocompletion=lambda: list(KINDS),
    ),
    folder: Path = Argument(
        ..., metavar="DIR", help="A new or an empty folder to write to."
    ),
    json: bool = options.JSON,
) -> None:
    paths = write_sample(kind, folder)
    size = sum(path.stat().st_size for path in paths)
    if json:
        terminal.emit({"kind": kind, "folder": str(folder), "files": len(paths)})
        return
    terminal.note(
        f"{folder}: {terminal.count(len(paths), 'file')},"
        f" {terminal.byte_size(size)}; {KINDS[kind].summary}."
    )
    model = f"{kind}.imprint"
    terminal.note(f"Next: {files.quoted('imprint', 'fit', folder, '-o', model)}")
