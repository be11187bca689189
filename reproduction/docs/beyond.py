"""Write the tables and images of `beyond.md` and of the pages in `beyond/`.

    python reproduction/docs/beyond.py RESULTS-subset RESULTS-texts RESULTS-sounds

All three are folders of `imprint study run paper/... --beside kernel`. What stands
between `<!-- NAME -->` and `<!-- end of NAME -->` is replaced; the words around it are
written by hand.
"""

import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from imprint.report.text_table import TextTable
from imprint_reproduction import ARTEFACTS
from imprint_reproduction.artefact import NotRunError, Results
from imprint_reproduction.collapse import measured_nc1
from imprint_reproduction.page import read_runs
from imprint_reproduction.sections import (
    Claims,
    Image,
    Run,
    Section,
    sections_by_artefact,
)
from imprint_reproduction.setting import MAX, cosine, role_study, unnormalised
from imprint_reproduction.table_result import compare_rows

HERE = Path(__file__).resolve().parent
IMAGES, TEXTS, SOUNDS, KERNEL = "images", "texts", "sounds", "kernel"
KINDS = (IMAGES, TEXTS, SOUNDS)
METHODS = {
    "one mean, `max` (Qi et al.)": cosine("mean"),
    "k-means, k = 20, `max` (the paper's)": cosine("kmeans(k=20)"),
    "all rows, 5 nearest": cosine("all", "nearest(m=5)"),
    "k-means, k = 20, `kernel`": "l2 / kmeans(k=20) / none / l2 / kernel",
    "all rows, `kernel`": "l2 / all / none / l2 / kernel",
    "least squares over all classes (oracle)": unnormalised("least_squares(reg={reg})"),
}
REGIONS = ("here, all", "here, d in 1", "here, NC1 > 1")


def claims(runs: Sequence[Run], needed: str) -> str:
    """The claims that the run of this name answers, next to the others' answers."""
    every = Claims.of(sections_by_artefact(runs), runs)
    tested = {
        claim: verdicts
        for claim, verdicts in every.verdicts.items()
        if needed in verdicts
    }
    claims = replace(every, verdicts=tested)
    return f"{claims.tally()}\n\n{claims.html()}"


def markdown(cells: TextTable) -> str:
    return "\n".join(cells.markdown()).strip()


def section(run: Run, name: str) -> Section:
    return next(s for s in run.sections if s.name == name)


def table(run: Run, name: str) -> TextTable:
    return next(p for p in section(run, name).parts if isinstance(p, TextTable))


def image(run: Run, name: str) -> Image:
    return next(p for p in section(run, name).parts if isinstance(p, Image))


def together_table(folders: Sequence[Path]) -> TextTable:
    """The table of proxies that decide together, a column for each kind of input."""
    artefact, found = ARTEFACTS["kernel"], []
    for folder in folders:
        scores = artefact.scores(Results(folder))
        found.append(compare_rows(artefact.methods(MAX), scores))
    lines = []
    for label, method in found[0].chosen.items():
        cells = (f"{f.means[label]:.2f} ± {f.stds[label]:.2f}" for f in found)
        ranks = (f"{f.comparison.rank(label):.2f}" for f in found)
        lines.append(
            (
                label,
                *(v for pair in zip(cells, ranks) for v in pair),
                method.replace("reg={reg}", "reg=λ"),
            )
        )
    head = (f"{name}, {what}" for name in KINDS for what in ("%", "rank"))
    return TextTable(
        ("", *head, "pre / generator / post / inf / aggregator"),
        tuple(lines),
        1,
        remarks=1,
    )


def by_dataset(folder: Path) -> TextTable:
    """Accuracy on all classes of each data set, the median over the seeds."""
    results = Results(folder)
    lines, datasets = [], results.setting.benchmark.datasets
    found = {}
    for name in ("table1", "aggregators_all", "kernel"):
        scores = ARTEFACTS[name].scores(results)
        whole = scores.where(task="all")
        found |= {
            m: np.median(whole.of(m), axis=1)
            for m in METHODS.values()
            if m in _asked(name)
        }
    for label, method in METHODS.items():
        lines.append((label, *(f"{v:.2f}" for v in found[method])))
    return TextTable(("accuracy, %", *datasets), tuple(lines), 1)


def over_k(folder: Path) -> TextTable:
    """k-means over the number of proxies on all classes of each data set, and the best
    of the other generators.
    """
    artefact, lines = ARTEFACTS["generators_over_k"], []
    for aggregator in ("max", KERNEL):
        scores = artefact.scores(Results(folder, aggregator))
        for i, at in enumerate(scores.instances):
            found = {
                g: [
                    float(np.median(scores.of(cosine(text.format(k=k)))[i]))
                    for k in artefact.k
                ]
                for g, (text, *_) in artefact.generators.items()
            }
            others = [
                max(values)
                for values in zip(*(v for g, v in found.items() if g != "kmeans"))
            ]
            kept = float(np.median(scores.of(cosine("all"))[i]))
            own = f"{at.dataset}, `{aggregator}`"
            lines.append(
                (f"{own}: k-means", *(f"{v:.2f}" for v in (*found["kmeans"], kept)))
            )
            lines.append((f"{own}: the best other", *(f"{v:.2f}" for v in others), ""))
    return TextTable(
        ("accuracy, %", *(f"k = {k}" for k in artefact.k), "all rows"), tuple(lines), 1
    )


def _asked(name: str) -> set[str]:
    return {m for row in ARTEFACTS[name].methods(MAX).values() for m in row}  # type: ignore[attr-defined]


def gains(folders: dict[str, Path]) -> TextTable:
    """NC1 of every data set, and what five proxies gain over one."""
    lines = []
    for name, folder in folders.items():
        nc1 = {
            (b, d): value
            for b, sets in measured_nc1(Results(folder))[0].items()
            for d, value in sets.items()
        }
        found = [_gains(Results(folder, aggregator)) for aggregator in ("max", KERNEL)]
        for at, value in sorted(nc1.items(), key=lambda item: item[1]):
            lines.append(
                (
                    f"{name}: {', '.join(at)}",
                    f"{value:.2f}",
                    *(f"{own[at]:+.2f}" for own in found),
                )
            )
    return TextTable(
        ("", "NC1", "gain with `max`", "gain with `kernel`"), tuple(lines), 1
    )


def _gains(results: Results) -> dict[tuple[str, str], float]:
    """Points that five k-means proxies gain over one, by backbone and data set."""
    few, found = [cosine(f"kmeans(k={k})") for k in (1, 5)], {}
    for role in ("benchmark", "combined"):
        with suppress(NotRunError):
            scores = results.scores(role_study(results.setting, role, few, ["all"]))
            one, five = (np.median(scores.of(method), axis=1) for method in few)
            found |= {
                (at.backbone, at.dataset): g
                for at, g in zip(scores.instances, five - one)
            }
    return found


def fits(runs: Sequence[Run]) -> TextTable:
    """How the gain follows NC1, in every run."""
    lines = []
    for run in runs:
        cells = table(run, "gain")
        lines += [
            (f"{run.name}, {row[0].removeprefix('here, ')}", *row[1:])
            for row in cells.rows
            if row[0] in REGIONS
        ]
        head = cells.head
    return TextTable(("points", *head[1:]), tuple(lines), 1)


def cost(runs: Sequence[Run]) -> str:
    own = [run for run in runs if not run.beside]
    return " ".join(
        f"{run.name.capitalize()}: {run.experiments:,} experiments,"
        f" {run.cpu_seconds / 60:.1f} minutes of CPU time."
        for run in own
    )


def main(subset: Path, texts: Path, sounds: Path) -> None:
    folders = dict(zip(KINDS, (subset, texts, sounds)))
    found = read_runs(list(folders.values()))
    if [run.beside for run in found] != ["", KERNEL] * len(folders):
        raise SystemExit("Every folder must hold results with --beside kernel.")
    names = (name for kind in KINDS for name in (kind, f"{kind}, {KERNEL}"))
    runs = [replace(run, name=name) for run, name in zip(found, names)]
    ours, joint, words, joint_words, heard, joint_heard = runs
    parts = {
        "cost": cost(runs),
        "together": markdown(together_table(list(folders.values()))),
        "kernel claims": claims([ours, joint], joint.name),
        "generators": markdown(table(joint, "generators_20")),
        "norms": markdown(table(joint, "norms_20")),
        "gains": markdown(gains(folders)),
        "fits": markdown(fits(runs[:4])),  # sounds have no set of a hundred classes
        "texts": markdown(by_dataset(texts)),
        "text claims": claims([ours, words, joint_words], words.name),
        "text least squares": markdown(table(words, "least_squares")),
        "text weight decay": markdown(table(words, "regularisation")),
        "text run times": markdown(table(words, "runtime")),
        "text generators over k": markdown(over_k(texts)),
        "sounds": markdown(by_dataset(sounds)),
        "sound generators over k": markdown(over_k(sounds)),
        "sound claims": claims([ours, heard, joint_heard], heard.name),
        "sound generators": markdown(table(heard, "generators_20")),
    }
    # layers.py writes its page
    others = [p for p in (HERE / "beyond").glob("*.md") if p.stem != "layers"]
    for path in (HERE / "beyond.md", *sorted(others)):
        page = path.read_text(encoding="utf-8")
        for name in re.findall(r"<!-- end of (.+) -->", page):
            start, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
            before, after = page.split(start)[0], page.split(end)[1]
            page = f"{before}{start}{parts.pop(name)}\n{end}{after}"
        path.write_text(page, encoding="utf-8")
    if parts:
        raise SystemExit(f"No page has a place for {', '.join(parts)}.")
    drawings = {
        "texts-modes": (words, "modes_l2"),
        "texts-gain": (words, "gain"),
        "texts-against_k_least_squares": (words, "against_k_least_squares"),
        "sounds-shots": (heard, "shots"),
    }
    for file, (run, name) in drawings.items():
        (HERE / "results" / f"{file}.svg").write_bytes(image(run, name).svg)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]))
