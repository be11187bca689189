"""What `imprint study` does with the paper's own studies."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from imprint.cli import _studying as studying
from imprint.cli import _terminal as terminal

if TYPE_CHECKING:
    from imprint.report.sections import Cells, Run


def run_paper(
    name: str,
    out: Path | None,
    embeddings: Path | None,
    only: tuple[list[str], list[str], int, str],
    how: dict[str, Any],
    dry: bool,
    json: bool,
) -> None:
    """Run `paper/NAME` on a folder of packs, and show what came out beside what was published."""
    from imprint.core.errors import ParameterError
    from imprint.paper import chosen
    from imprint.paper.run import run, works
    from imprint.paper.setting import discover

    names = list(chosen(name))
    if embeddings is None:
        raise ParameterError(f"study run {name}: say where packs BACKBONE-DATASET.npz lie, with --embeddings DIR.")
    setting = discover(embeddings, *only)
    if dry:
        studies = [(study, out / role if out else None) for role, study in works(name, setting)]
        studying.show_plan(studies, how["workers"], how["limit"], json)
        return
    if out is None:
        raise ParameterError("study run: say where the results go, with --out DIR.")
    with terminal.bars() as bars:
        summary = run(name, setting, out, progress=studying.progress(bars), measuring=bars.step, **how)
    if not json:
        _show_results(out, names, setting.beside)
    studying.show_summary(summary, out, json)


def report_paper(folders: Sequence[Path], to: Path, json: bool) -> None:
    """Write the page of everything that was run into some folders."""
    from imprint.paper.page import read_runs, write_page

    runs = read_runs(folders)
    files = write_page(runs, to)
    if json:
        claims = [{"run": r.name, "study": s.name, **asdict(c)} for r in runs for s in r.sections for c in s.claims]
        terminal.emit({"files": [str(f) for f in files], "claims": claims})
        return
    _show_claims(runs)
    terminal.note(f"Written: {files[0]}, {files[1]} and {terminal.count(len(files) - 2, 'picture')}.")


def _show_results(out: Path, names: Sequence[str], beside: str) -> None:
    from imprint.paper.page import sections
    from imprint.report.sections import Cells, Run

    runs = [Run("here", "", tuple(sections(out, names)))]
    if beside and (again := sections(out, names, beside)):
        runs.append(Run(f"here, {beside}", "", tuple(again)))
    for one in (section for run in runs if len(names) == 1 for section in run.sections):
        terminal.note(f"{one.where}: {one.title}. {one.text} {one.note}".strip())
        for part in one.parts:
            if isinstance(part, Cells):
                _show_cells(part)
    _show_claims(runs)


def _show_cells(cells: "Cells") -> None:
    terminal.table(cells.head, cells.rows, right=[h for j, h in enumerate(cells.head) if cells.right(j)])
    if cells.caption:
        terminal.note(cells.caption)


def _show_claims(runs: Sequence["Run"]) -> None:
    from imprint.report.sections import claims_table, rows, tally, together

    found, names = rows(together(runs)), [run.name for run in runs]
    if found:
        _show_cells(claims_table(found, names))
        terminal.note(tally(found, names))
