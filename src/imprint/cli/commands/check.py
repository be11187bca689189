"""Find problems in labelled data.

Lists labels to check, duplicates, outliers and unreadable inputs. The train and test
splits of the data are checked together. The exit code is 1 if an input is unreadable.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from imprint.cli import models, options, terminal
from imprint.evaluation import Inspection, inspect_rows
from imprint.evaluation.labelled_rows import LabelledRows, all_splits, gather
from imprint.evaluation.page import inspection_page
from imprint.imprinter import Imprinter

MAX_LISTED = 10


def command(
    data: str = options.DATA,
    page: Path | None = options.PAGE,
    *,
    columns: options.TagColumns,
    tree: bool | None = options.TREE,
    network: options.CachedNetwork,
    json: bool = options.JSON,
) -> int:
    model = Imprinter(**vars(network))
    with terminal.progress_bars() as bars:
        splits = all_splits(
            data,
            progress=bars.download,
            tree=tree,
            modality=model.embedder.requested,
            **vars(columns),
        )
        models.choose_backbone(model, splits[0])
        parts = [
            f"{part}: {split.found}" for part, split in zip(splits[0].parts, splits)
        ]
        terminal.note(f"{'; '.join(parts) if len(splits) > 1 else splits[0].found}.")
        rows = gather(model, splits, bars.embedding(), root=data)
    result = inspect_rows(
        rows.X, rows.y, rows.paths, rows.skipped, rows.tags, rows.blocks
    )
    terminal.emit(result.as_json()) if json else _show(result, rows)
    if page is not None:
        models.write_page(
            page,
            inspection_page(f"Check of {Path(data).absolute().name}", result, rows),
        )
    return 1 if rows.skipped else 0


def _show(result: Inspection, rows: LabelledRows) -> None:
    if not (
        result.mislabelled or result.duplicates or result.outliers or result.unreadable
    ):
        terminal.write(f"No problems found in {terminal.count(len(rows.y), 'row')}.\n")
    label_of = dict(zip(rows.paths, rows.y.tolist()))
    suspects = [
        [rows.caption(s.path), terminal.marked(s.label), s.suggested, f"{s.score:.1f}"]
        for s in result.mislabelled[:MAX_LISTED]
    ]
    copies = []
    for number, group in enumerate(result.duplicates[:MAX_LISTED], start=1):
        # labels that contradict each other
        show_label = terminal.marked if number <= result.conflicts else str
        copies += [
            [rows.caption(path), show_label(label_of[path]), number]
            for path in group[:MAX_LISTED]
        ]
    differing = (
        f", {result.conflicts:,} with different labels" if result.conflicts else ""
    )
    outliers = [
        [rows.caption(path), label_of[path]] for path in result.outliers[:MAX_LISTED]
    ]
    unreadable = [
        [rows.relative(item["path"]), item["reason"]]
        for item in result.unreadable[:MAX_LISTED]
    ]
    suspect_columns = ["label", "suggested", "score"]
    tables: list[tuple[str, Sequence[object], list[str], list[list[Any]]]] = [
        (
            "Labels to check: {:,}, the highest score first",
            result.mislabelled,
            suspect_columns,
            suspects,
        ),
        (
            f"Groups of duplicates: {{:,}}{differing}",
            result.duplicates,
            ["label", "group"],
            copies,
        ),
        ("Outliers: {:,}", result.outliers, ["label"], outliers),
        ("Unreadable inputs: {:,}", result.unreadable, ["reason"], unreadable),
    ]
    for title, problems, columns, lines in tables:
        if problems:
            is_cut = len(problems) > MAX_LISTED
            listed = f" ({MAX_LISTED} are listed; --json has all)" if is_cut else ""
            terminal.heading(title.format(len(problems)) + listed)
            terminal.table(
                ["name", *columns],
                lines,
                right=["score", "group"],
                names=not rows.kind.typed,
            )
