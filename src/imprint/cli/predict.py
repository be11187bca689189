"""`imprint predict`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from imprint.cli import _options as options
from imprint.cli import _terminal as terminal

if TYPE_CHECKING:
    from imprint.imprinter import Embedded, Imprinter

REASONS = 3
NONE = "none of these"
MEANINGS = {
    "similarity": "more is nearer",
    "distance": "less is nearer",
    "weight": "what it adds to the score of the class that won",
}


def command(
    file: options.Model,
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="INPUT...",
            help="Pictures or folders of them; texts, or a table of them; a table of embeddings; - reads lines from "
            "standard input.",
            show_default=False,
        ),
    ],
    unknown: Annotated[
        float | None,
        typer.Option(
            metavar="P",
            help=f"Answer '{NONE}' where `known` is below P; with 0.05, 5 % of what does belong is refused too.",
            min=0,
            max=1,
        ),
    ] = None,
    top: Annotated[int, typer.Option(help="How many classes to show for each input.", min=1)] = 3,
    why: Annotated[bool, typer.Option("--why", help="Show the proxies that count most and a picture of each.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="For spreadsheets: CSV on standard output.")] = False,
    sort_into: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Copy every picture into the sub-folder of its class; overwrites nothing."),
    ] = None,
    link: Annotated[bool, typer.Option("--link", help="With --sort-into: link instead of copying.")] = False,
    text_column: options.TextColumn = None,
    json: options.Json = False,
    backbone: options.MovedNetwork = None,
    device: options.Device = "cpu",
    threads: options.Threads = None,
    cache: options.Cache = True,
) -> None:
    """Say what pictures, texts or embeddings are.

    What cannot be read is named, the others are still answered, and the exit code is 1.
    """
    from imprint.cli import _inputs
    from imprint.cli._files import check_model
    from imprint.core.errors import ParameterError, UnreadableInput
    from imprint.imprinter import Imprinter

    check_model(file)
    model = Imprinter.load(file, backbone=backbone, device=device, threads=threads, cache=cache)
    kind = model.embedder.kind
    if sort_into is not None and (kind.typed or not kind.needs_backbone):
        raise ParameterError(
            f"--sort-into: only files, such as pictures, can be sorted; this model reads {kind.plural}."
        )
    with terminal.bars() as bars:
        seen = model.look(_inputs.inputs(inputs, kind, text_column), bars.embedding("Looking"))
    if not len(seen.X):
        raise UnreadableInput(seen.skipped[0].name, seen.skipped[0].reason)
    answers = _answers(model, seen, top, unknown, REASONS if why else 0)
    if json:
        terminal.emit(answers)
    elif csv:
        _write_csv(answers)
    else:
        _show(answers, model.measure)
    if sort_into is not None:
        _sort(sort_into, answers, link)
    terminal.skipped(seen.skipped)
    if _inputs.STANDARD_INPUT in inputs and model.calibrated:
        _monitor(model, answers)
    terminal.end(seen.skipped)


def _answers(
    model: "Imprinter", seen: "Embedded", top: int, unknown: float | None, reasons: int
) -> list[dict[str, Any]]:
    known = model.known(seen) if model.calibrated or unknown is not None else [None] * len(seen.X)
    answers = []
    for i, (name, guesses, p) in enumerate(zip(seen.names, model.top(seen, top), known)):
        refused = unknown is not None and p is not None and p < unknown
        answer: dict[str, Any] = {
            "path": name,
            "label": None if refused else guesses[0].label,
            "probability": guesses[0].probability,
            "known": None if p is None else float(p),
            "top": [g._asdict() for g in guesses],
        }
        if reasons:
            near = model.why(seen._replace(X=seen.X[i : i + 1]), reasons)
            answer["why"] = [{"label": r.label, model.measure: r.value, "picture": r.picture} for r in near]
        answers.append(answer)
    return answers


def _monitor(model: "Imprinter", answers: list[dict[str, Any]]) -> None:
    """Report where a stream of inputs stops looking like the training data."""
    from imprint.active.drift import DriftMonitor
    from imprint.cli.watch import report_drift

    monitor = DriftMonitor.of(model.learnt.head)
    if monitor is not None:
        for answer in answers:
            monitor.observe(answer["known"], answer["path"])
        if monitor.alarm:
            report_drift(monitor.alarm, monitor)


def _show(answers: list[dict[str, Any]], measure: str) -> None:
    rows, reasons = [], []
    for answer in answers:
        others = ", ".join(f"{g['label']} {_percent(g['probability'])}" for g in answer["top"][1:])
        label = NONE if answer["label"] is None else answer["label"]
        known = [] if answer["known"] is None else [f"{answer['known']:.3f}"]
        rows.append([answer["path"], label, _percent(answer["probability"]), *known, others])
        for r in answer.get("why", []):
            reasons.append([answer["path"], r["label"], f"{r[measure]:+.3f}" if measure == "weight" else
                            f"{r[measure]:.3f}", r["picture"] or "a proxy"])  # fmt: skip
    known = [] if answers[0]["known"] is None else ["known"]
    terminal.table(["name", "class", "probability", *known, "others"], rows, right=["probability", *known])
    if reasons:
        terminal.write("\n")
        terminal.table(["name", "proxy of", measure, "beside"], reasons, right=[measure])
        terminal.note(f"{measure}: {MEANINGS[measure]}.")


def _write_csv(answers: list[dict[str, Any]]) -> None:
    rows = [[a["path"], "" if a["label"] is None else a["label"], a["probability"], a["known"]] for a in answers]
    terminal.write_csv(["path", "label", "probability", "known"], rows)


def _sort(folder: Path, answers: list[dict[str, Any]], link: bool) -> None:
    from imprint.cli._sorting import sort_into

    done = sort_into(folder, ((a["path"], a["label"]) for a in answers), link)
    terminal.note(f"{folder}: {terminal.count(done, 'file')} {'linked' if link else 'copied'}.")


def _percent(p: float) -> str:
    return f"{100 * p:.1f} %"
