"""Demonstrate the methods on handwritten digits.

Compares recipes, flags an unseen digit, forgets a class, and shows the effect of the
number of proxies. It takes less than a minute, needs no network, prints a table and
writes one HTML page.
"""

from pathlib import Path
from statistics import fmean

from typer import Option

from imprint.cli import files, options, terminal
from imprint.cli.terminal import percent
from imprint.core.files.atomic import make_folder
from imprint.demo import Findings, explore, write_page
from imprint.demo.findings import CURVES, SHOTS, TASKS
from imprint.demo.page import verdict


def command(
    out: Path = Option(
        Path("out"),
        "--out",
        "-o",
        metavar="FOLDER",
        help="The folder of the page.",
        rich_help_panel=options.OUTPUT_SECTION,
    ),
    seeds: int = Option(
        5,
        min=2,
        help="Number of random draws of the training images.",
        rich_help_panel=options.METHOD_SECTION,
    ),
    cache: bool = options.CACHE,
    json: bool = options.JSON,
) -> None:
    make_folder(out)
    if cache:
        files.check_home()
    with terminal.progress_bars() as bars:
        findings = explore(seeds, cache, bars.embedding(), bars.step)
    page = write_page(findings, out)
    comparison, order = findings.comparison, findings.comparison.order
    accuracy = {
        name: {task: findings.accuracy(name, task) for task in TASKS} for name in order
    }
    if json:
        facts = {
            "page": str(page),
            "seconds": findings.seconds,
            "recipes": [
                {
                    "name": name,
                    "rank": comparison.rank(name),
                    "accuracy": accuracy[name],
                }
                for name in order
            ],
            "instances": comparison.instances,
            "friedman": comparison.friedman.p,
            "pairs": [pair._asdict() for pair in comparison.pairs],
            "knowledge": findings.knowledge._asdict(),
            "nc1": findings.nc1,
        }
        return terminal.emit(facts)
    terminal.write(
        f"Accuracy in % on all ten digits, the even, the odd, and 0 to 2; {SHOTS}"
        f" images per class, mean of {findings.seeds} draws.\n\n"
    )
    columns = ["recipe", "rank", *TASKS]
    percentages = {
        name: [f"{100 * share:.1f}" for share in accuracy[name].values()]
        for name in order
    }
    rows = [
        [name, f"{comparison.rank(name):.2f}", *percentages[name]] for name in order
    ]
    terminal.table(columns, rows, right=columns[1:])
    terminal.write("\n".join(["", *verdict(findings), "", *_sentences(findings), ""]))
    terminal.note(f"The page with the figures: {page.absolute()}")
    terminal.note(
        "Next: imprint fit FOLDER -o model.imprint, with one sub-folder of images per"
        " class"
    )


def _sentences(findings: Findings) -> list[str]:
    """Sentences about the other results: the number of proxies, expected accuracy,
    unseen digits and forgetting.
    """
    knowledge = findings.knowledge
    curve = findings.curves[next(iter(CURVES)), "kernel"]
    accuracies = ", ".join(f"{100 * fmean(values):.1f}" for values in curve.values())
    exactly = "exactly " if knowledge.forgets_exactly else ""
    return [
        (
            f"Accuracy of kernel with {', '.join(map(str, curve))} proxies per class"
            f" (all images): {accuracies} %."
        ),
        (
            f"Fitted on 0 to 8: expected accuracy {percent(knowledge.expected)},"
            f" measured {percent(knowledge.accuracy)}."
        ),
        (
            f"Answered 'none of these': {100 * knowledge.refused_unknown:.0f} % of the"
            f" unseen nines, {100 * knowledge.refused_known:.0f} % of the known digits."
        ),
        (
            f"Forgetting the nine takes {1000 * knowledge.forgetting:.1f} ms; "
            f"then it answers {exactly}like a model without it."
        ),
    ]
