"""Output of `imprint study`: progress, summaries, plans, and the studies of the paper."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from imprint.cli import _terminal as terminal
from imprint.cli._progress import Bars
from imprint.kernels.cpu import available_cpus
from imprint.paper.page import read_runs, sections, write_page
from imprint.report.sections import Run, claim_rows, claims_table, sections_by_artefact, tally
from imprint.report.text_table import TextTable
from imprint.study import Progress, Study, Summary, plan
from imprint.study.plan import Estimate, check_size, estimate
from imprint.study.run import source_of
from imprint.study.store import Store


def progress(bars: Bars) -> Callable[[Progress], None]:
    """Progress of experiments as a bar."""

    def report(p: Progress) -> None:
        failed = f", {p.failed:,} failed" if p.failed else ""
        bars.step(f"{p.rate:,.0f} experiments/s{failed}" if p.done else "Experiments", p.done + p.failed, p.total)

    return report


def show_summary(summary: Summary, out: Path, json: bool) -> None:
    """Print the summary of a run; exit with code 1 if something failed."""
    for line in summary.failures:
        terminal.note(f"Failed: {line}")
    if json:
        terminal.emit({**vars(summary), "folder": str(out)})
    else:
        reused = summary.experiments - summary.computed - summary.failed
        terminal.note(
            f"{out}: {terminal.count(summary.computed, 'experiment')} computed in {summary.seconds:.1f} s, "
            f"{reused:,} computed earlier, {summary.failed:,} failed."
        )
        terminal.note(f"Next: imprint study report {out}")
    terminal.end(summary.failures)


def show_plan(studies: Sequence[tuple[Study, Path | None]], workers: int | None, limit: int, json: bool) -> None:
    """Print the plan of some studies, given the folders of their results."""
    parts = [Estimate(0, 0, 0, 0, 0, 0.0, 0.0)]
    for study, out in studies:
        terminal.note(f"{study.name}: maximum {study.points:,} experiments.")
        check_size(study, limit)
        done = Store(out).done() if out is not None else set()
        parts.append(estimate(plan(study, source_of(study), done, limit), workers or available_cpus()))
    sums = {name: sum(getattr(part, name) for part in parts) for name in Estimate._fields}
    total = Estimate(**{**sums, "memory": max(part.memory for part in parts)})
    if json:
        terminal.emit(total._asdict())
    else:
        terminal.table(["what", "how much"], _lines(total), right=["how much"])


def _lines(total: Estimate) -> list[tuple[str, str]]:
    return [
        ("experiments named", f"{total.experiments:,}"),
        ("left out by rules", f"{total.left_out:,}"),
        ("not finished yet", f"{total.to_do:,}"),
        ("distinct computations", f"{total.computations:,}"),
        ("units of work", f"{total.units:,}"),
        ("time, roughly", f"{total.seconds:,.0f} s"),
        ("memory of a worker, roughly", f"{total.memory / 1e6:,.0f} MB"),
    ]


def report_paper(folders: Sequence[Path], to: Path, json: bool) -> None:
    """Write one page about all runs in some folders."""
    runs = read_runs(folders)
    files = write_page(runs, to)
    if json:
        claims = [{"run": r.name, "study": s.name, **asdict(c)} for r in runs for s in r.sections for c in s.claims]
        terminal.emit({"files": [str(f) for f in files], "claims": claims})
        return
    _show_claims(runs)
    terminal.note(f"Written: {files[0]}, {files[1]} and {terminal.count(len(files) - 2, 'picture')}.")


def show_results(out: Path, names: Sequence[str], beside: str) -> None:
    """Print the results of studies of the paper: the tables of a single one, and the claims of all."""
    runs = [Run("here", "", tuple(sections(out, names)))]
    if beside and (again := sections(out, names, beside)):
        runs.append(Run(f"here, {beside}", "", tuple(again)))
    for one in (section for each in runs if len(names) == 1 for section in each.sections):
        terminal.note(f"{one.where}: {one.title}. {one.text} {one.note}".strip())
        for part in one.parts:
            if isinstance(part, TextTable):
                _show_table(part)
    _show_claims(runs)


def _show_table(cells: TextTable) -> None:
    terminal.table(cells.head, cells.rows, right=[h for j, h in enumerate(cells.head) if cells.right_aligned(j)])
    if cells.caption:
        terminal.note(cells.caption)


def _show_claims(runs: Sequence[Run]) -> None:
    claims, names = claim_rows(sections_by_artefact(runs)), [run.name for run in runs]
    if claims:
        _show_table(claims_table(claims, names))
        terminal.note(tally(claims, names))
