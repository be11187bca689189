"""`imprint study run`, `imprint study report` and `imprint study export`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from imprint.cli import _options as options
from imprint.cli import _studies as studies
from imprint.cli import _terminal as terminal
from imprint.cli._files import check_writable
from imprint.cli._progress import progress_bars
from imprint.core.errors import FileError, ParameterError
from imprint.paper import chosen
from imprint.paper.artefact import is_run
from imprint.paper.run import planned_studies
from imprint.paper.run import run as run_paper
from imprint.paper.setting import discover
from imprint.report.forms import as_json, as_text
from imprint.report.page import write_report
from imprint.report.results_file import MEANINGS, check_own
from imprint.report.results_file import export as write
from imprint.report.tables import tabulate
from imprint.study import Study
from imprint.study import run as run_study
from imprint.study.store import Store

app = typer.Typer(
    no_args_is_help=True,
    help="Run many experiments at once, and report on them.",
    add_completion=False,
    rich_markup_mode=None,
)


@app.command()
def run(
    study: Annotated[
        str,
        typer.Argument(
            metavar="FILE|NAME",
            help="A .yaml or .py file; or a study of the paper, see `imprint list studies`.",
            show_default=False,
        ),
    ],
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="DIR", help="The folder of the results.")] = None,
    embeddings: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Packs BACKBONE-DATASET.npz. [default: that of the study]")
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(help="Number of processes. [default: one per core, or one for little work]", min=1),
    ] = None,
    engine: options.Engine = "local",
    limit: Annotated[int, typer.Option(help="Maximum number of experiments that a study may name.", min=1)] = 2_000_000,
    dry: Annotated[bool, typer.Option("--dry", help="Print the plan without running it.")] = False,
    backbones: Annotated[str, typer.Option(help="For paper/...: only these, separated by commas.")] = "",
    datasets: Annotated[str, typer.Option(help="For paper/...: only these, separated by commas.")] = "",
    maps: Annotated[
        int, typer.Option(help='For paper/...: number of the ten label maps of "d in 1".', min=1, max=10)
    ] = 10,
    beside: Annotated[
        str, typer.Option(help="For paper/...: repeat the studies with another aggregator than max, such as kernel.")
    ] = "",
    json: options.Json = False,
) -> None:
    """Run a study, or resume it.

    Finished results are stored in DIR, one file per unit of work. After an interruption, the same command resumes. The
    exit code is 1 if something failed; failures are recorded with their reason and tried again the next time.
    """
    setting = None
    if study.startswith("paper/"):
        chosen(study)  # refuses an unknown name
        if embeddings is None:
            packs = "the folder of the packs BACKBONE-DATASET.npz: --embeddings DIR"
            raise ParameterError(f"study run {study}: name {packs}.")
        setting = discover(embeddings, _names(backbones), _names(datasets), maps, beside)
        planned = [(one, out / role if out else None) for role, one in planned_studies(study, setting)]
    elif not Path(study).exists():
        raise FileError(f"study run {study}: there is no such file. The studies of the paper: imprint list studies.")
    else:
        planned = [(Study.read(study) if embeddings is None else Study.read(study).at(embeddings), out)]
    if dry:
        studies.show_plan(planned, workers, limit, json)
        return
    if out is None:
        raise ParameterError("study run: name the folder of the results: --out DIR.")
    how: dict[str, Any] = {"workers": workers, "engine": engine, "limit": limit}
    with progress_bars() as bars:
        how["progress"] = studies.progress(bars)
        if setting is None:
            summary = run_study(planned[0][0], out, **how)
        else:
            summary = run_paper(study, setting, out, measuring=bars.step, **how)
    if setting is not None and not json:
        studies.show_results(out, list(chosen(study)), setting.beside)
    studies.show_summary(summary, out, json)


@app.command()
def report(
    folders: Annotated[
        list[Path],
        typer.Argument(
            metavar="DIR",
            help="The results of a study; for studies of the paper, several folders are compared.",
            show_default=False,
        ),
    ],
    metric: Annotated[str, typer.Option(help="accuracy, macro_f1 or weighted_f1.")] = "accuracy",
    best: Annotated[int, typer.Option(help="Number of methods that the diagram compares.", min=2, max=50)] = 10,
    to: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The folder of the report. [default: `report` in the first DIR]")
    ] = None,
    json: options.Json = False,
) -> None:
    """Report on a study.

    Prints a table with ranks, and writes it with a diagram as text, CSV, LaTeX and one HTML page into the folder
    `report` in DIR. For studies of the paper, it writes one page about everything that was run, in one folder or
    several, next to the published results.
    """
    folder = folders[0]
    if len({f.resolve() for f in folders}) < len(folders):
        raise ParameterError("study report: a folder is given twice.")
    if is_run(folder):
        studies.report_paper(folders, to or folder / "report", json)
        return
    if len(folders) > 1:
        raise ParameterError(f"study report {folder} ...: several folders go together only for studies of the paper.")
    store = Store(folder)
    study = store.study()
    tables = tabulate(study.results(folder), metric, best, study.recipes)
    files = write_report(to or folder / "report", tables, store.manifest(), store.failures())
    if json:
        terminal.emit({"experiments": tables.experiments, "files": [str(f) for f in files], **as_json(tables)})
    else:
        terminal.write(as_text(tables))
        others = ", ".join(f.name for f in files if f.suffix != ".html")
        terminal.note(f"Also written: {next(f for f in files if f.suffix == '.html')}; next to it {others}.")


@app.command()
def export(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The results of studies.", show_default=False)],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="A .parquet or .csv file. [default: `results.parquet` in DIR]"
        ),
    ] = None,
    json: options.Json = False,
) -> None:
    """Write every result to one Parquet or CSV file.

    pandas, polars, R and spreadsheets read it. It has one row per experiment: its settings, results and cost. The
    Parquet file and `--json` describe each column.
    """
    path = output or folder / "results.parquet"
    if output is not None:
        check_writable(output)
    check_own(path)
    table = write(folder, path)
    if json:
        columns = [{"name": f.name, "type": str(f.type), "meaning": MEANINGS[f.name]} for f in table.schema]
        terminal.emit({"file": str(path), "rows": len(table), "columns": columns})
    else:
        size = f"{terminal.count(len(table), 'experiment')}, {len(MEANINGS)} columns, {terminal.bytes_of(path)}"
        terminal.note(f"{path}: {size}.")


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]
