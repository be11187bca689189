"""What every `imprint study run` shows: progress, a summary, or only what there would be to do."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from imprint.cli import _terminal as terminal

if TYPE_CHECKING:
    from imprint.study import Progress, Study, Summary
    from imprint.study.plan import Estimate


def progress(bars: terminal.Bars) -> Callable[["Progress"], None]:
    """Progress of experiments as a bar."""

    def report(p: "Progress") -> None:
        failed = f", {p.failed:,} failed" if p.failed else ""
        bars.step(f"{p.rate:,.0f} experiments/s{failed}" if p.done else "Experiments", p.done + p.failed, p.total)

    return report


def show_summary(summary: "Summary", out: Path, json: bool) -> None:
    """What a run did; ends the command with an exit code of 1 where something failed."""
    for line in summary.failures:
        terminal.note(f"Failed: {line}")
    if json:
        terminal.emit({**vars(summary), "folder": str(out)})
    else:
        there = summary.experiments - summary.computed - summary.failed
        terminal.note(
            f"{out}: {terminal.count(summary.computed, 'experiment')} computed in {summary.seconds:.1f} s, "
            f"{there:,} there before, {summary.failed:,} failed."
        )
        terminal.note(f"Next: imprint study report {out}")
    if summary.failures:
        raise typer.Exit(1)


def show_plan(studies: Sequence[tuple["Study", Path | None]], workers: int | None, limit: int, json: bool) -> None:
    """What there is to do in some studies, given the folders of their results."""
    from imprint.kernels.cpu import available_cpus
    from imprint.study import plan
    from imprint.study.plan import Estimate, check_size, estimate
    from imprint.study.run import source_of
    from imprint.study.store import Store

    parts = [Estimate(0, 0, 0, 0, 0, 0.0, 0.0)]
    for study, out in studies:
        terminal.note(f"{study.name}: {study.points:,} experiments at most.")
        check_size(study, limit)
        done = Store(out).done() if out is not None else set()
        parts.append(estimate(plan(study, source_of(study), done, limit), workers or available_cpus()))
    sums = {name: sum(getattr(part, name) for part in parts) for name in Estimate._fields}
    found = Estimate(**{**sums, "memory": max(part.memory for part in parts)})
    if json:
        terminal.emit(found._asdict())
    else:
        terminal.table(["what", "how much"], _lines(found), right=["how much"])


def _lines(found: "Estimate") -> list[tuple[str, str]]:
    return [
        ("experiments named", f"{found.experiments:,}"),
        ("left out by rules", f"{found.left_out:,}"),
        ("not finished yet", f"{found.to_do:,}"),
        ("distinct computations", f"{found.computations:,}"),
        ("units of work", f"{found.units:,}"),
        ("time, roughly", f"{found.seconds:,.0f} s"),
        ("memory of a worker, roughly", f"{found.memory / 1e6:,.0f} MB"),
    ]
