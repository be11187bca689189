"""Run many experiments at once, and report on them."""

from collections.abc import Callable, Sequence
from pathlib import Path

from typer import Argument, Option

from imprint.cli import options, terminal
from imprint.cli.files import check_writable
from imprint.core.errors import FileError, ParameterError
from imprint.report.results_file import MEANINGS, check_own
from imprint.report.results_file import export as write
from imprint.report.study_report import as_json, as_text, write_report
from imprint.report.tables import tabulate
from imprint.study import (
    CollectionReport,
    NamedStudy,
    Progress,
    RunOptions,
    Store,
    Study,
    StudySelection,
    Summary,
    collection_of,
    collections,
    plan,
)
from imprint.study import run as run_study
from imprint.study.collection import ResultParts, ResultTable
from imprint.study.plan import estimate
from imprint.study.store import SHARDS

MAX_FAILURES = 20  # that the terminal lists
PLAN_LINES = {
    "experiments named": "{experiments:,}",
    "left out by rules": "{left_out:,}",
    "not finished yet": "{to_do:,}",
    "distinct computations": "{computations:,}",
    "units of work": "{units:,}",
    "memory of a worker, roughly": "{megabytes:,.0f} MB",
}


def run(
    study: str = Argument(
        metavar="FILE|NAME",
        help=(
            "A .yaml or .py file; or a study of the paper, see `imprint list studies`."
        ),
    ),
    out: Path | None = Option(
        None,
        "--out",
        "-o",
        metavar="DIR",
        help="The folder of the results.",
        rich_help_panel=options.OUTPUT_SECTION,
    ),
    embeddings: Path | None = Option(
        None,
        metavar="DIR",
        help="The folder of the packs BACKBONE-DATASET.npz. [default: the study's]",
        rich_help_panel=options.DATA_SECTION,
    ),
    workers: int | None = Option(
        None,
        min=1,
        help="Number of processes. [default: one per core; one for little work]",
        rich_help_panel=options.RUNNING_SECTION,
    ),
    engine: str = options.ENGINE,
    limit: int = Option(
        2_000_000,
        min=1,
        help="Maximum number of experiments that a study may have.",
        rich_help_panel=options.RUNNING_SECTION,
    ),
    dry: bool = Option(
        False,
        "--dry-run",
        "--dry",
        help="Print the plan without running it.",
        rich_help_panel=options.RUNNING_SECTION,
    ),
    backbones: str = Option(
        "",
        help="For paper/...: only these, separated by commas.",
        rich_help_panel=options.PAPER_SECTION,
    ),
    datasets: str = Option(
        "",
        help="For paper/...: only these, separated by commas.",
        rich_help_panel=options.PAPER_SECTION,
    ),
    maps: int = Option(
        10,
        min=1,
        max=10,
        help='For paper/...: number of label maps of the task "d in 1".',
        rich_help_panel=options.PAPER_SECTION,
    ),
    beside: str = Option(
        "",
        help=(
            "For paper/...: repeat the studies with another aggregator than max, such"
            " as kernel."
        ),
        rich_help_panel=options.PAPER_SECTION,
    ),
    json: bool = options.JSON,
) -> int:
    """Run a study, or resume it.

    Finished results are stored in DIR, one file per unit of work. After an
    interruption, the same command resumes. The exit code is 1 if something failed;
    failures are recorded with their reason and tried again the next time.
    """
    selection = StudySelection(
        embeddings=embeddings,
        backbones=_names(backbones),
        datasets=_names(datasets),
        maps=maps,
        beside=beside,
    )
    collection = collection_of(study)
    work: Study | NamedStudy
    if collection is None:
        work = _read(study, embeddings)
    else:
        work = collection.select(study, selection)
    if dry:
        _show_plan(_planned(work, out), limit, json)
        return 0
    if out is None:
        raise ParameterError("study run: name the folder of the results: --out DIR.")
    with terminal.progress_bars() as bars:
        how = RunOptions(
            workers=workers,
            engine=engine,
            limit=limit,
            progress=_progress(bars.step),
            measuring=bars.step,
        )
        try:
            summary = _run(work, out, how)
        except KeyboardInterrupt:
            _note_stored(out)
            raise
    if isinstance(work, NamedStudy) and not json:
        _show_parts(work.results(out))
    return _show_summary(summary, out, json)


def report(
    folders: list[Path] = Argument(
        metavar="DIR",
        help=(
            "The results of a study; for studies of the paper, several folders are"
            " compared."
        ),
    ),
    metric: str = Option(
        "accuracy",
        help="accuracy, macro_f1 or weighted_f1.",
        rich_help_panel=options.OUTPUT_SECTION,
    ),
    best: int = Option(
        10,
        min=2,
        max=50,
        help="Number of methods that the diagram compares.",
        rich_help_panel=options.OUTPUT_SECTION,
    ),
    to: Path | None = Option(
        None,
        metavar="DIR",
        help="The folder of the report. [default: `report` in DIR]",
        rich_help_panel=options.OUTPUT_SECTION,
    ),
    json: bool = options.JSON,
) -> None:
    """Report on a study.

    Prints a table with ranks, and writes it with a diagram as text, CSV, LaTeX and one
    HTML page into the folder `report` in DIR. For studies of the paper, it writes one
    page about everything that was run, in one folder or several, next to the published
    results.
    """
    folder = folders[0]
    target = to or folder / "report"
    if len({f.resolve() for f in folders}) < len(folders):
        raise ParameterError("study report: a folder is given twice.")
    for collection in collections().values():
        if collection.is_run(folder):
            return _show_report(collection.report(folders, target), json)
    if len(folders) > 1:
        raise ParameterError(
            f"study report {folder} ...: several folders go together only for studies"
            " of the paper."
        )
    store = Store(folder)
    study = store.study()
    tables = tabulate(study.results(folder), metric, best, study.recipes)
    files = write_report(target, tables, store.manifest(), store.failures())
    if json:
        terminal.emit(
            {
                "experiments": tables.experiments,
                "files": [str(f) for f in files],
                **as_json(tables),
            }
        )
    else:
        terminal.write(as_text(tables))
        others = ", ".join(f.name for f in files if f.suffix != ".html")
        terminal.note(
            f"Wrote {next(f for f in files if f.suffix == '.html')}; beside it:"
            f" {others}."
        )


def export(
    folder: Path = Argument(metavar="DIR", help="The results of studies."),
    output: Path | None = options.output(
        "A .parquet or .csv file. [default: `results.parquet` in DIR]", None
    ),
    json: bool = options.JSON,
) -> None:
    """Write every result to one Parquet or CSV file.

    pandas, polars, R and spreadsheets read it. It has one row per experiment: its
    settings, results and cost. The Parquet file and `--json` describe each column.
    """
    path = output or folder / "results.parquet"
    if output is not None:
        check_writable(output)
    check_own(path)
    table = write(folder, path)
    if json:
        columns = [
            {"name": f.name, "type": str(f.type), "meaning": MEANINGS[f.name]}
            for f in table.schema
        ]
        terminal.emit({"file": str(path), "rows": len(table), "columns": columns})
    else:
        size = (
            f"{terminal.count(len(table), 'experiment')}, {len(MEANINGS)} columns,"
            f" {terminal.file_size(path)}"
        )
        terminal.note(f"{path}: {size}.")


COMMANDS = (run, report, export)


def _names(text: str) -> tuple[str, ...]:
    names = [name.strip() for name in text.split(",")]
    return tuple(filter(None, names))


def _read(study: str, embeddings: Path | None) -> Study:
    """The study of a file, on the packs of another folder if one is given."""
    if not Path(study).exists():
        raise FileError(
            f"study run {study}: there is no such file. The named studies of installed"
            " packages, such as weight-imprinting-reproduction: imprint list studies."
        )
    read = Study.read(study)
    return read if embeddings is None else read.at(embeddings)


def _planned(
    work: Study | NamedStudy, out: Path | None
) -> list[tuple[Study, Path | None]]:
    """A study, or those behind a named one, and the folders of their results."""
    if isinstance(work, Study):
        return [(work, out)]
    planned = []
    for batch in work.batches():
        for study in batch:
            folder = out / study.name if out else None
            planned.append((study, folder))
    return planned


def _progress(step: Callable[..., object]) -> Callable[[Progress], None]:
    """Shows the progress of experiments as that of a bar."""

    def show(progress: Progress) -> None:
        failed = f", {progress.failed:,} failed" if progress.failed else ""
        label = "Experiments"
        if progress.done:
            label = f"{progress.rate:,.0f} experiments/s{failed}"
        finished = progress.done + progress.failed
        step(label, finished, progress.total, seconds_left=progress.seconds_left)

    return show


def _run(work: Study | NamedStudy, out: Path, options: RunOptions) -> Summary:
    """Run a study."""
    if isinstance(work, NamedStudy):
        return work.run(out, options)
    return run_study(
        work,
        out,
        workers=options.workers,
        engine=options.engine,
        limit=options.limit,
        progress=options.progress,
    )


def _note_stored(out: Path) -> None:
    """Name what an interrupted run has stored."""
    finished = sum(1 for _ in out.rglob(f"{SHARDS}/*.parquet"))
    if finished:
        terminal.note(
            f"{out} has the results of {terminal.count(finished, 'unit')}; the same"
            " command computes the rest."
        )


def _show_plan(
    studies: Sequence[tuple[Study, Path | None]], limit: int, json: bool
) -> None:
    """Print the plan of some studies, given the folders of their results."""
    plans = []
    for study, out in studies:
        terminal.note(f"{study.name}: maximum {study.points:,} experiments.")
        done = Store(out).done() if out is not None else set()
        plans.append(plan(study, study.source(), done, limit))
    total = estimate(plans)
    if json:
        return terminal.emit(total)
    lines = [
        (what, text.format(**total, megabytes=total["memory"] / 1e6))
        for what, text in PLAN_LINES.items()
    ]
    terminal.table(["what", "how much"], lines, right=["how much"])
    terminal.note(
        "A run shows the remaining time once its first unit has ended: it is measured."
    )


def _show_summary(summary: Summary, out: Path, json: bool) -> int:
    """Print the summary of a run, and return its exit code."""
    for line in summary.failures[:MAX_FAILURES]:
        terminal.note(f"Failed: {line}")
    further = len(summary.failures) - MAX_FAILURES
    if further > 0:
        terminal.note(f"And {further:,} more, which `imprint study report` lists.")
    if json:
        terminal.emit({**vars(summary), "folder": str(out)})
    else:
        reused = summary.experiments - summary.computed - summary.failed
        terminal.note(
            f"{out}: {terminal.count(summary.computed, 'experiment')} computed in"
            f" {summary.seconds:.1f} s, {reused:,} computed earlier, {summary.failed:,}"
            " failed."
        )
        terminal.note(f"Next: imprint study report {out}")
    return 1 if summary.failures else 0


def _show_report(report: CollectionReport, json: bool) -> None:
    """Print what a report of named studies says, and its files."""
    if json:
        files = [str(file) for file in report.files]
        return terminal.emit({"files": files, "claims": report.claims})
    _show_parts(report.parts)
    page, text, *images = report.files
    terminal.note(
        f"Written: {page}, {text} and {terminal.count(len(images), 'image')}."
    )


def _show_parts(parts: ResultParts) -> None:
    """Print tables, and notes between them."""
    for part in parts:
        if isinstance(part, str):
            terminal.note(part)
        else:
            _show_table(part)


def _show_table(table: ResultTable) -> None:
    numbers = [head for j, head in enumerate(table.head) if table.right_aligned(j)]
    terminal.table(table.head, table.rows, right=numbers, names=False)
    terminal.note(table.caption or None)
