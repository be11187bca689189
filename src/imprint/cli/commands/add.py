"""Add classes, or more inputs of known classes, to a model.

Other classes do not change. The file is replaced at the end; after an interruption it
is unchanged. If two commands change one model, the second waits for the first, and the
model has both changes.
"""

from pathlib import Path

from typer import Option

from imprint.cli import files, models, options, terminal
from imprint.core.errors import FileError
from imprint.core.files.atomic import expanded
from imprint.datasets.tables import table_in
from imprint.imprinter import Imprinter


def command(
    file: Path = options.MODEL,
    data: str = options.DATA,
    *,
    label: str | None = Option(
        None,
        "--as",
        metavar="CLASS",
        help="The class of everything in DATA, such as a folder of one class.",
        rich_help_panel=options.DATA_SECTION,
    ),
    max_rows: int | None = Option(
        None,
        metavar="N",
        min=1,
        help=(
            "Each class that gets inputs keeps its N newest ones only, first in, first"
            " out, for streams whose classes drift."
        ),
    ),
    columns: options.TagColumns,
    network: options.NetworkOfModel,
    json: bool = options.JSON,
) -> int:
    if label is None:
        _check_folder(file, data)
    model = Imprinter.load(file, **vars(network))
    rows, _ = models.embed(model, data, columns, label)
    with Imprinter.change(file, **vars(network)) as model:
        copies = model.state.count_known(rows)
        model.add(rows, max_rows=max_rows)
    if copies:
        terminal.note(f"Already in the model: {model.embedder.kind.count(copies)}.")
    models.report(model, file, json, rows)
    return terminal.report_skipped(rows.skipped)


def _check_folder(file: Path, data: str) -> None:
    """Refuse a folder without sub-folders, and offer to add it as one class."""
    folder = expanded(data)
    if not folder.is_dir() or table_in(folder, "train") is not None:
        return
    if not any(entry.is_dir() for entry in folder.iterdir()):
        command = files.quoted("imprint", "add", file, data, "--as", folder.name)
        raise FileError(
            f"{data} has no sub-folders; make one per class, or add everything in it as"
            f" one class: {command}."
        )
