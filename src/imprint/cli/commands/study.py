"""Run many experiments at once, and report on them."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from typer import Argument, Option

from imprint.cli import options, terminal
from imprint.cli.files import check_writable
from imprint.core.errors import FileError, ParameterError
from imprint.kernels.cpu import available_cpus
from imprint.paper import artefacts_named
from imprint.paper.artefact import is_run
from imprint.paper.page import read_runs, sections, write_page
from imprint.paper.run import planned_batches
from imprint.paper.run import run as run_paper
from imprint.paper.setting import discover
from imprint.report.results_file import MEANINGS, check_own
from imprint.report.results_file import export as write
from imprint.report.sections import Claims, Run, sections_by_artefact
from imprint.report.study_report import as_json, as_text, write_report
from imprint.report.tables import tabulate
from imprint.report.text_table import TextTable
from imprint.study import Progress, Study, Summary, plan
from imprint.study import run as run_study
from imprint.study.plan import estimate
from imprint.study.store import Store

PLAN_LINES = {
    "experiments named": "{experiments:,}",
    "left out by rules": "{left_out:,}",
    "not finished yet": "{to_do:,}",
    "distinct computations": "{computations:,}",
    "units of work": "{units:,}",
    "time, roughly": "{seconds:,.0f} s",
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
        None, "--out", "-o", metavar="DIR", help="The folder of the results."
    ),
    embeddings: Path | None = Option(
        None,
        metavar="DIR",
        help="The folder of the packs BACKBONE-DATASET.npz. [default: the study's]",
    ),
    workers: int | None = Option(
        None,
        min=1,
        help="Number of processes. [default: one per core; one for little work]",
    ),
    engine: str = options.ENGINE,
    limit: int = Option(
        2_000_000, min=1, help="Maximum number of experiments that a study may have."
    ),
    dry: bool = Option(False, "--dry", help="Print the plan without running it."),
    backbones: str = Option("", help="For paper/...: only these, separated by commas."),
    datasets: str = Option("", help="For paper/...: only these, separated by commas."),
    maps: int = Option(
        10,
        min=1,
        max=10,
        help='For paper/...: number of label maps of the task "d in 1".',
    ),
    beside: str = Option(
        "",
        help=(
            "For paper/...: repeat the studies with another aggregator than max, such"
            " as kernel."
        ),
    ),
    json: bool = options.JSON,
) -> int:
    """Run a study, or resume it.

    Finished results are stored in DIR, one file per unit of work. After an
    interruption, the same command resumes. The exit code is 1 if something failed;
    failures are recorded with their reason and tried again the next time.
    """
    setting = None
    if study.startswith("paper/"):
        artefacts_named(study)  # refuses an unknown name
        if embeddings is None:
            packs = "the folder of the packs BACKBONE-DATASET.npz: --embeddings DIR"
            raise ParameterError(f"study run {study}: name {packs}.")
        setting = discover(
            embeddings, _names(backbones), _names(datasets), maps, beside
        )
        batches = planned_batches(study, setting)
        planned = [
            (part, out / part.name if out else None)
            for batch in batches
            for part in batch
        ]
    elif not Path(study).exists():
        raise FileError(
            f"study run {study}: there is no such file. The studies of the paper:"
            " imprint list studies."
        )
    else:
        planned = [
            (
                (
                    Study.read(study)
                    if embeddings is None
                    else Study.read(study).at(embeddings)
                ),
                out,
            )
        ]
    if dry:
        _show_plan(planned, workers or available_cpus(), limit, json)
        return 0
    if out is None:
        raise ParameterError("study run: name the folder of the results: --out DIR.")
    with terminal.progress_bars() as bars:

        def progress(p: Progress) -> None:
            failed = f", {p.failed:,} failed" if p.failed else ""
            bars.step(
                f"{p.rate:,.0f} experiments/s{failed}" if p.done else "Experiments",
                p.done + p.failed,
                p.total,
            )

        settings: dict[str, Any] = {
            "workers": workers,
            "engine": engine,
            "limit": limit,
            "progress": progress,
        }
        if setting is None:
            summary = run_study(planned[0][0], out, **settings)
        else:
            summary = run_paper(study, setting, out, measuring=bars.step, **settings)
    if setting is not None and not json:
        _show_results(out, list(artefacts_named(study)), setting.beside)
    return _show_summary(summary, out, json)


def report(
    folders: list[Path] = Argument(
        metavar="DIR",
        help=(
            "The results of a study; for studies of the paper, several folders are"
            " compared."
        ),
    ),
    metric: str = Option("accuracy", help="accuracy, macro_f1 or weighted_f1."),
    best: int = Option(
        10, min=2, max=50, help="Number of methods that the diagram compares."
    ),
    to: Path | None = Option(
        None, metavar="DIR", help="The folder of the report. [default: `report` in DIR]"
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
    if is_run(folder):
        return _report_paper(folders, target, json)
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
            f"Also written: {next(f for f in files if f.suffix == '.html')}; next to it"
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


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _show_plan(
    studies: Sequence[tuple[Study, Path | None]], workers: int, limit: int, json: bool
) -> None:
    """Print the plan of some studies, given the folders of their results."""
    plans = []
    for study, out in studies:
        terminal.note(f"{study.name}: maximum {study.points:,} experiments.")
        done = Store(out).done() if out is not None else set()
        plans.append(plan(study, study.source(), done, limit))
    total = estimate(plans, workers)
    if json:
        return terminal.emit(total)
    lines = [
        (what, text.format(**total, megabytes=total["memory"] / 1e6))
        for what, text in PLAN_LINES.items()
    ]
    terminal.table(["what", "how much"], lines, right=["how much"])


def _show_summary(summary: Summary, out: Path, json: bool) -> int:
    """Print the summary of a run, and return its exit code."""
    for line in summary.failures:
        terminal.note(f"Failed: {line}")
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


def _report_paper(folders: Sequence[Path], to: Path, json: bool) -> None:
    """Write one page about all runs in some folders."""
    runs = read_runs(folders)
    files = write_page(runs, to)
    if json:
        claims = [
            {"run": r.name, "study": s.name, **asdict(c)}
            for r in runs
            for s in r.sections
            for c in s.claims
        ]
        return terminal.emit({"files": [str(f) for f in files], "claims": claims})
    _show_claims(runs)
    terminal.note(
        f"Written: {files[0]}, {files[1]} and"
        f" {terminal.count(len(files) - 2, 'picture')}."
    )


def _show_results(out: Path, names: Sequence[str], beside: str) -> None:
    """Print the results of studies of the paper: the tables of a single one, and the
    claims of all.
    """
    runs = [Run("here", "", tuple(sections(out, names)))]
    if beside and (repeated := sections(out, names, beside)):
        runs.append(Run(f"here, {beside}", "", tuple(repeated)))
    for section in (
        (section for run in runs for section in run.sections) if len(names) == 1 else ()
    ):
        terminal.note(
            f"{section.where}: {section.title}. {section.text} {section.note}".strip()
        )
        for part in section.parts:
            if isinstance(part, TextTable):
                _show_table(part)
    _show_claims(runs)


def _show_table(cells: TextTable) -> None:
    numbers = [head for j, head in enumerate(cells.head) if cells.right_aligned(j)]
    terminal.table(cells.head, cells.rows, right=numbers, names=False)
    terminal.note(cells.caption or None)


def _show_claims(runs: Sequence[Run]) -> None:
    claims = Claims.of(sections_by_artefact(runs), runs)
    if claims:
        _show_table(claims.table())
        terminal.note(claims.tally())
