"""`imprint check`."""

from typing import TYPE_CHECKING, Any

from imprint.cli import _options as options
from imprint.cli import _terminal as terminal

if TYPE_CHECKING:
    from imprint.evaluation import Inspection

MOST = 10


def command(
    data: options.Data,
    page: options.Page = None,
    labels: options.Labels = None,
    label_column: options.LabelColumn = None,
    text_column: options.TextColumn = None,
    backbone: options.Network = None,
    json: options.Json = False,
    device: options.Device = "cpu",
    threads: options.Threads = None,
    cache: options.Cache = True,
) -> None:
    """Say what is wrong with labelled data.

    Lists labels that are likely wrong, duplicates, outliers, and inputs that cannot be read (the exit code is 1 if
    there are any). Data with a `train` and a `test` part are checked together.
    """
    from imprint.cli._files import check_home, check_page
    from imprint.evaluation import inspect_rows
    from imprint.evaluation.labelled_rows import all_splits, gather
    from imprint.imprinter import Imprinter

    if page is not None:
        check_page(page)
    model = Imprinter(backbone, device=device, threads=threads, cache=cache)
    columns: dict[str, Any] = {"label_column": label_column, "text_column": text_column}
    with terminal.bars() as bars:
        splits = all_splits(data, labels=labels, progress=bars.download, **columns)
        model.embedder.choose(splits[0].kind)
        if cache and splits[0].kind.needs_backbone:
            check_home()
        terminal.note("; ".join(split.found for split in splits) + ".")
        rows = gather(model, splits, bars.embedding())
    found = inspect_rows(rows.X, rows.y, rows.paths, rows.skipped)
    if page is not None:
        from imprint.evaluation.page import write_inspection

        write_inspection(page, f"What is wrong with {data}?", found, rows)
    if json:
        terminal.emit(found.as_json())
    else:
        _show(found, len(rows.y))
    if page is not None:
        terminal.note(f"The page: {page}, {terminal.bytes_of(page)}.")
    terminal.end(rows.skipped)


def _show(found: "Inspection", rows: int) -> None:
    from imprint.core.printable import printable

    if not (found.mislabelled or found.duplicates or found.outliers or found.unreadable):
        terminal.write(f"Nothing found in {terminal.count(rows, 'row')}.\n")
    if found.mislabelled:
        _title(f"{terminal.count(len(found.mislabelled), 'label')} likely wrong", len(found.mislabelled))
        lines = [
            [printable(s.path), printable(s.label, 30), printable(s.suggested, 30), f"{100 * s.probability:.0f} %"]
            for s in found.mislabelled[:MOST]
        ]
        terminal.table(["name", "label", "looks like", "probability"], lines, right=["probability"])
    if found.duplicates:
        _title(terminal.count(len(found.duplicates), "group") + " of duplicates", len(found.duplicates))
        for group in found.duplicates[:MOST]:
            terminal.write("  " + "  =  ".join(printable(path) for path in group[:MOST]) + "\n")
    for title, paths in (
        ("outlier", found.outliers),
        ("unreadable input", [f"{u['path']}: {u['reason']}" for u in found.unreadable]),
    ):
        if paths:
            _title(terminal.count(len(paths), title), len(paths))
            terminal.write("".join(f"  {printable(path)}\n" for path in paths[:MOST]))


def _title(text: str, total: int) -> None:
    cut = f", the first {MOST}" if total > MOST else ""
    terminal.write(f"\n{text}{cut}\n")
