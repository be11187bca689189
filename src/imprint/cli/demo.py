"""`imprint demo`."""

from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

import typer

from imprint.cli import _options as options
from imprint.cli import _terminal as terminal
from imprint.cli._files import check_home
from imprint.cli._progress import progress_bars
from imprint.core.files.atomic import make_folder
from imprint.demo import Findings, explore, write_page
from imprint.demo.findings import SHOTS, TASKS
from imprint.demo.page import verdict


def command(
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", help="The folder of the page.")] = Path("out"),
    seeds: Annotated[int, typer.Option(help="Number of random draws of the training pictures.", min=2)] = 5,
    cache: options.Cache = True,
    json: options.Json = False,
) -> None:
    """Demonstrate the methods on handwritten digits.

    Compares recipes, flags an unseen digit, forgets a class, and shows the effect of the number of proxies. It takes
    less than a minute, needs no network, prints a table and writes one HTML page.
    """
    make_folder(out)
    if cache:
        check_home()
    with progress_bars() as bars:
        findings = explore(seeds, cache, bars.embedding(), bars.step)
    page = write_page(findings, out)
    if json:
        terminal.emit(_as_json(findings, page))
        return
    _show(findings)
    terminal.note(f"The page with the figures: {page.absolute()}")
    terminal.note("Next: imprint fit FOLDER -o model.imprint, with one sub-folder of pictures per class")


def _show(findings: Findings) -> None:
    order = findings.comparison.order
    rows = [
        [name, f"{findings.comparison.rank(name):.2f}", *(f"{100 * findings.accuracy(name, t):.1f}" for t in TASKS)]
        for name in order
    ]
    columns = ["recipe", "rank", *TASKS]
    terminal.write(
        f"Accuracy in % on all ten digits, the even, the odd, and 0 to 2; {SHOTS} pictures per class, "
        f"mean of {findings.seeds} draws.\n\n"
    )
    terminal.table(columns, rows, right=columns[1:])
    terminal.write("\n".join(["", *verdict(findings), "", *_lines(findings), ""]) + "\n")


def _lines(findings: Findings) -> Iterator[str]:
    """The results next to the comparison, one line each."""
    from imprint.demo.findings import CURVES

    k, curve = findings.knowledge, findings.curves[next(iter(CURVES)), "kernel"]
    budget = ", ".join(f"{100 * fmean(values):.1f}" for values in curve.values())
    yield f"Accuracy of kernel with {', '.join(map(str, curve))} proxies per class (all pictures): {budget} %."
    yield f"Fitted on 0 to 8: expected accuracy {100 * k.expected:.1f} %, measured {100 * k.accuracy:.1f} %."
    yield (
        f"Answered 'none of these': {100 * k.refused_unknown:.0f} % of the unseen nines, "
        f"{100 * k.refused_known:.0f} % of the known digits."
    )
    exactly = "exactly " if k.forgets_exactly else ""
    yield f"Forgetting the nine takes {1000 * k.forgetting:.1f} ms; then it answers {exactly}like a model without it."


def _as_json(findings: Findings, page: Path) -> dict[str, Any]:
    c = findings.comparison
    return {
        "page": str(page),
        "seconds": findings.seconds,
        "recipes": [
            {"name": n, "rank": c.rank(n), "accuracy": {t: findings.accuracy(n, t) for t in TASKS}} for n in c.order
        ],
        "instances": c.instances,
        "friedman": c.friedman.p,
        "pairs": [pair._asdict() for pair in c.pairs],
        "knowledge": findings.knowledge._asdict(),
        "nc1": findings.nc1,
    }
