"""What `imprint study` does with the paper's own studies."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from imprint.cli import _terminal as terminal

if TYPE_CHECKING:
    from imprint.paper.places import Places
    from imprint.report.sections import Section
    from imprint.study import Progress


def run_paper(
    name: str,
    out: Path | None,
    embeddings: Path | None,
    only: tuple[list[str], list[str], int],
    how: dict[str, Any],
    dry: bool,
    json: bool,
) -> None:
    """Run `paper/NAME` on a folder of packs, and show what came out beside what was published."""
    from imprint.core.errors import ParameterError
    from imprint.paper import chosen
    from imprint.paper.places import discover
    from imprint.paper.run import run

    names = list(chosen(name))
    if embeddings is None:
        raise ParameterError(f"study run {name}: say where packs BACKBONE-DATASET.npz lie, with --embeddings DIR.")
    places = discover(embeddings, *only)
    if dry:
        _show_plan(name, places, out, how["workers"], json)
        return
    if out is None:
        raise ParameterError("study run: say where the results go, with --out DIR.")
    with terminal.bars() as bars:

        def report(p: "Progress") -> None:
            bars.step(f"{p.rate:,.0f} experiments/s" if p.done else "Experiments", p.done + p.failed, p.total)

        summary = run(name, places, out, progress=report, measuring=bars.step, **how)
    for line in summary.failures:
        terminal.note(f"Failed: {line}")
    if json:
        terminal.emit({**vars(summary), "folder": str(out)})
    else:
        _show_results(out, names)
        terminal.note(
            f"{out}: {terminal.count(summary.computed, 'experiment')} computed in {summary.seconds:.1f} s, "
            f"{summary.failed:,} failed."
        )
        terminal.note(f"Next: imprint study report {out}")
    if summary.failures:
        raise typer.Exit(1)


def report_paper(folder: Path, to: Path, json: bool) -> None:
    """Write the page of everything that was run."""
    from imprint.paper.page import sections, write_page

    found = sections(folder)
    files = write_page(folder, to, found)
    if json:
        claims = [{"study": s.name, **asdict(c)} for s in found for c in s.claims]
        terminal.emit({"files": [str(f) for f in files], "claims": claims})
        return
    _show_claims(found)
    terminal.note(f"Written: {files[0]}, {files[1]} and {terminal.count(len(files) - 2, 'picture')}.")


def _show_results(out: Path, names: Sequence[str]) -> None:
    from imprint.paper.page import sections
    from imprint.report.sections import Cells

    found = sections(out, names)
    if len(found) == 1:
        terminal.note(f"{found[0].where}: {found[0].title}. {found[0].text}")
        for part in found[0].parts:
            if isinstance(part, Cells):
                terminal.table(part.head, part.rows, right=[h for j, h in enumerate(part.head) if part.right(j)])
    _show_claims(found)


def _show_claims(found: Sequence["Section"]) -> None:
    claims = [c for s in found for c in s.claims]
    rows = [(c.text, str(c.verdict), c.figures) for c in claims]
    if rows:
        terminal.table(["claim", "here", "figures"], rows)
        tally = Counter(str(c.verdict) for c in claims)
        terminal.note("Claims: " + ", ".join(f"{n} {v}" for v, n in tally.items()) + ".")


def _show_plan(name: str, places: "Places", out: Path | None, workers: int | None, json: bool) -> None:
    from imprint.paper.run import works
    from imprint.study import plan
    from imprint.study.estimate import estimate
    from imprint.study.run import cores, source_of
    from imprint.study.store import Store

    parts = []
    for role, study in works(name, places):
        done = Store(out / role).done() if out is not None else set()
        parts.append(estimate(plan(study, source_of(study), done), workers or cores()))
    total = {k: sum(getattr(p, k) for p in parts) for k in ("experiments", "to_do", "computations", "seconds")}
    if json:
        terminal.emit(total)
        return
    lines = {
        "experiments named": f"{total['experiments']:,}",
        "not finished yet": f"{total['to_do']:,}",
        "distinct computations": f"{total['computations']:,}",
        "time, roughly": f"{total['seconds']:,.0f} s",
    }
    terminal.table(["what", "how much"], list(lines.items()), right=["how much"])
