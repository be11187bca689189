"""`imprint check`."""

from imprint.cli import _options as options
from imprint.cli import _terminal as terminal
from imprint.cli._files import check_page, choose_backbone
from imprint.cli._progress import progress_bars
from imprint.evaluation import Inspection, inspect_rows
from imprint.evaluation.labelled_rows import LabelledRows, all_splits, gather
from imprint.evaluation.page import write_inspection
from imprint.imprinter import Imprinter

MAX_LISTED = 10


def command(
    data: options.Data,
    page: options.Page = None,
    labels: options.Labels = None,
    label_column: options.LabelColumn = None,
    separator: options.Separator = None,
    text_column: options.TextColumn = None,
    tree: options.Tree = None,
    backbone: options.Backbone = None,
    json: options.Json = False,
    device: options.Device = "cpu",
    threads: options.Threads = None,
    cache: options.Cache = True,
) -> None:
    """Find problems in labelled data.

    Lists labels to check, duplicates, outliers and unreadable inputs (the exit code is 1 if there are any). The train
    and test splits of the data are checked together.
    """
    check_page(page)
    model = Imprinter(backbone, device=device, threads=threads, cache=cache)
    columns = {"labels": labels, "label_column": label_column, "text_column": text_column, "separator": separator}
    with progress_bars() as bars:
        splits = all_splits(data, progress=bars.download, tree=tree, **columns)
        choose_backbone(model, splits[0].kind)
        parts = zip(splits[0].parts, splits) if len(splits) > 1 else [("", splits[0])]
        terminal.note("; ".join(f"{part}: {split.found}".removeprefix(": ") for part, split in parts) + ".")
        rows = gather(model, splits, bars.embedding(), root=data)
    result = inspect_rows(rows.X, rows.y, rows.paths, rows.skipped, rows.tags)
    if page is not None:
        write_inspection(page, f"Check of {rows.title}", result, rows)
    if json:
        terminal.emit(result.as_json())
    else:
        _show(result, rows)
    terminal.name_page(page)
    terminal.end(rows.skipped)


def _show(result: Inspection, rows: LabelledRows) -> None:
    if not (result.mislabelled or result.duplicates or result.outliers or result.unreadable):
        terminal.write(f"No problems found in {terminal.count(len(rows.y), 'row')}.\n")
    if result.mislabelled:
        _heading("Labels to check", len(result.mislabelled), ", the highest score first")
        lines = [
            [rows.caption(s.path), terminal.marked(s.label), s.suggested, f"{s.score:.1f}"]
            for s in result.mislabelled[:MAX_LISTED]
        ]
        terminal.table(["name", "label", "suggested", "score"], lines, right=["score"])
    if result.duplicates:
        differing = f", {result.conflicts:,} with different labels" if result.conflicts else ""
        _heading("Groups of duplicates", len(result.duplicates), differing)
        terminal.table(["name", "label", "group"], _duplicates(result, rows), right=["group"])
    for title, paths in (
        ("Outliers", [rows.caption(path) for path in result.outliers]),
        ("Unreadable inputs", [f"{rows.relative(u['path'])}: {u['reason']}" for u in result.unreadable]),
    ):
        if paths:
            _heading(title, len(paths))
            terminal.write_paths(paths[:MAX_LISTED])


def _duplicates(result: Inspection, rows: LabelledRows) -> list[list[object]]:
    """Name, label and group of duplicates; labels that contradict each other are marked."""
    label_of = dict(zip(rows.paths, rows.y.tolist()))
    lines: list[list[object]] = []
    for number, group in enumerate(result.duplicates[:MAX_LISTED], start=1):
        for path in group[:MAX_LISTED]:
            label = label_of[path]
            shown = terminal.marked(label) if number <= result.conflicts else label
            lines.append([rows.caption(path), shown, number])
    return lines


def _heading(title: str, total: int, remark: str = "") -> None:
    listed = f" (the first {MAX_LISTED})" if total > MAX_LISTED else ""
    terminal.heading(f"{title}: {total:,}{remark}{listed}")
