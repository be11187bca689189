"""`imprint predict`."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from imprint.cli import _options as options
from imprint.cli import _terminal as terminal

if TYPE_CHECKING:
    from imprint.imprinter import Embedded, Imprinter

REASONS = 3


def command(
    file: options.Model,
    pictures: Annotated[
        list[str],
        typer.Argument(metavar="IMAGE...", help="Pictures, or folders of them; texts for a model of texts."),
    ],
    top: Annotated[int, typer.Option(help="How many classes to show for each picture.", min=1)] = 3,
    why: Annotated[bool, typer.Option("--why", help="Show the nearest proxies and a picture of each.")] = False,
    json: options.Json = False,
    backbone: options.MovedNetwork = None,
    device: options.Device = "cpu",
    threads: options.Threads = None,
) -> None:
    """Say what is on pictures.

    A picture that cannot be read is named, the others are still answered, and the exit code is 1.
    """
    from imprint.cli._pictures import pictures_in
    from imprint.core.errors import ImprintError
    from imprint.imprinter import Imprinter

    model = Imprinter.load(file, backbone=backbone, device=device, threads=threads)
    items = pictures_in(pictures) if model.backbone.modality == "image" else pictures
    seen = model.look(items)
    if not len(seen.X):
        raise ImprintError(f"Cannot read {seen.skipped[0].name}: {seen.skipped[0].reason}.")
    names = seen.names if model.backbone.modality == "image" else items
    answers = _answers(model, seen, list(names), top, REASONS if why else 0)
    if json:
        terminal.emit(answers)
    else:
        _show(answers, model.measure)
    terminal.skipped(seen.skipped)
    if seen.skipped:
        raise typer.Exit(1)


def _answers(model: "Imprinter", seen: "Embedded", names: list[str], top: int, reasons: int) -> list[dict[str, Any]]:
    answers = []
    for i, (name, guesses) in enumerate(zip(names, model.top(seen, top))):
        answer: dict[str, Any] = {"path": name, **guesses[0]._asdict(), "top": [g._asdict() for g in guesses]}
        if reasons:
            near = model.why(seen._replace(X=seen.X[i : i + 1]), reasons)
            answer["why"] = [{"label": r.label, model.measure: r.value, "picture": r.picture} for r in near]
        answers.append(answer)
    return answers


def _show(answers: list[dict[str, Any]], measure: str) -> None:
    explained = "why" in answers[0]
    columns = ["picture", "class", "probability", "others", *([f"nearest proxies ({measure})"] if explained else [])]
    rows = []
    for answer in answers:
        others = ", ".join(f"{g['label']} {_percent(g['probability'])}" for g in answer["top"][1:])
        row = [answer["path"], answer["label"], _percent(answer["probability"]), others]
        if explained:
            row.append("\n".join(f"{r['label']} {r[measure]:.3f}  {r['picture'] or ''}" for r in answer["why"]))
        rows.append(row)
    terminal.table(columns, rows, right=["probability"])


def _percent(p: float) -> str:
    return f"{100 * p:.1f} %"
