"""`imprint demo`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from imprint.cli import _options as options
from imprint.cli import _terminal as terminal

if TYPE_CHECKING:
    from imprint.demo import Findings


def command(
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", help="Where the page goes.")] = Path("out"),
    seeds: Annotated[int, typer.Option(help="How many draws of the training pictures.", min=2)] = 5,
    cache: options.Cache = True,
    json: options.Json = False,
) -> None:
    """Compare the recipes on handwritten digits.

    It takes less than a minute and no network, prints a table and writes one HTML page.
    """
    from imprint.cli._files import check_home
    from imprint.demo import explore, write_page
    from imprint.demo.page import make_folder

    make_folder(out)
    if cache:
        check_home()
    with terminal.bars() as bars:
        findings = explore(seeds, cache, bars.embedding(), bars.step)
    page = write_page(findings, out)
    if json:
        terminal.emit(_as_json(findings, page))
        return
    _show(findings)
    terminal.note(f"The page with the figures: {page.absolute()}")
    terminal.note("Next: imprint fit FOLDER -o model.imprint, with one sub-folder of pictures per class")


def _show(findings: "Findings") -> None:
    from imprint.demo.findings import TASKS
    from imprint.demo.page import verdict

    order = findings.comparison.order
    rows = [
        [name, f"{findings.comparison.rank(name):.2f}", *(f"{100 * findings.accuracy(name, t):.1f}" for t in TASKS)]
        for name in order
    ]
    columns = ["recipe", "rank", *TASKS]
    terminal.table(columns, rows, right=columns[1:])
    k = findings.knowledge
    lines = [
        *verdict(findings),
        "",
        f"Taught the digits 0 to 8, kernel expects {100 * k.expected:.1f} % and has {100 * k.accuracy:.1f} %;",
        f"it calls {100 * k.refused_unknown:.0f} % of the nines, which it has never seen, 'none of these', and "
        f"{100 * k.refused_known:.0f} % of what it knows.",
    ]
    terminal.write("\n".join(["", *lines, ""]) + "\n")


def _as_json(findings: "Findings", page: Path) -> dict[str, Any]:
    from imprint.demo.findings import TASKS

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
