"""`imprint predict`."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from imprint.cli import _options as options
from imprint.cli import _terminal as terminal

if TYPE_CHECKING:
    from imprint.imprinter import Imprinter

REASONS = 3
NONE = "none of these"
MEANINGS = {
    "similarity": "the larger, the closer",
    "distance": "the smaller, the closer",
    "weight": "how much the proxy adds to the score of the most probable class",
}
TITLES = {"weight": "contribution"}
KNOWN = "known: conformal p-value of belonging to one of the classes; below {0:g} for about {1:g} % of inputs that do."


def command(
    file: options.Model,
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="INPUT...",
            help="Files or folders of them; texts, or a table of them; a table of embeddings; - reads standard input: "
            "one text or path per line, or one picture. A word that exists as a file, or ends like one, is a file.",
            show_default=False,
        ),
    ],
    unknown: Annotated[
        float | None,
        typer.Option(
            metavar="P",
            help=f"Answer '{NONE}' if the p-value `known` is below P; in a tree of classes, answer with the deepest "
            "node that is still likely. With 0.05, about 5 % of the inputs that do belong are rejected.",
            min=0,
            max=1,
        ),
    ] = None,
    top: Annotated[int, typer.Option(help="How many classes to show for each input.", min=1)] = 3,
    level: Annotated[
        int | None,
        typer.Option(metavar="N", help="Answer with the node at level N of a tree of classes; 1 is the top.", min=1),
    ] = None,
    why: Annotated[
        bool, typer.Option("--why", help="Show the proxies that contribute most, and a training input of each.")
    ] = False,
    csv: Annotated[
        bool, typer.Option("--csv", help="CSV on standard output; to the rows of a table, columns are appended.")
    ] = False,
    sort_into: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Copy every file into the sub-folder of its class; overwrites nothing."),
    ] = None,
    link: Annotated[bool, typer.Option("--link", help="With --sort-into: link instead of copying.")] = False,
    text: Annotated[bool, typer.Option("--text", help="Every INPUT is a text, even if it looks like a file.")] = False,
    text_column: options.TextColumn = None,
    json: options.Json = False,
    backbone: options.MovedNetwork = None,
    device: options.Device = "cpu",
    threads: options.Threads = None,
    cache: options.Cache = True,
) -> None:
    """Classify pictures, texts, sounds or embeddings.

    Inputs that cannot be read are listed, the others are classified, and the exit code is 1.
    """
    import numpy as np

    from imprint.cli import _inputs
    from imprint.cli._csv import append_to_table, write_answers
    from imprint.cli._files import check_csv, check_model
    from imprint.core.errors import ParameterError, UnreadableInput
    from imprint.imprinter import Imprinter
    from imprint.imprinter.predictions import predictions

    check_model(file)
    if csv:
        check_csv("predict", inputs)
    model = Imprinter.load(file, backbone=backbone, device=device, threads=threads, cache=cache)
    kind = model.embedder.kind
    if sort_into is not None and model.state.head.tags:
        raise ParameterError("--sort-into: an input of a model of tags has several labels; use --csv.")
    if sort_into is not None and (kind.typed or not kind.needs_backbone):
        raise ParameterError(f"--sort-into: only files, such as pictures, are sorted; this model reads {kind.plural}.")
    with terminal.bars() as bars:
        split = _inputs.inputs(inputs, kind, text_column, text)
        embedded = model.look(split, bars.embedding())
    if not len(embedded.X):
        raise UnreadableInput(embedded.skipped[0].name, embedded.skipped[0].reason)
    readable = np.delete(np.arange(len(split)), [s.index for s in embedded.skipped]).tolist()
    if level is not None:
        model.tree.level(level)  # refused before the work
    answers = predictions(model.state.head, model.tree, embedded, top=top, unknown=unknown, level=level)
    if why:
        for i, answer in enumerate(answers):
            reasons = model.why(embedded._replace(X=embedded.X[i : i + 1]), REASONS)
            answer["why"] = [{"label": r.label, model.measure: r.value, "picture": r.picture} for r in reasons]
    if json:
        terminal.emit(answers)
    elif csv and not text and _inputs.is_table(inputs[0]):
        append_to_table(Path(inputs[0]), dict(zip(readable, answers)))
    elif csv:
        write_answers(answers)
    else:
        captions = split.captions if kind.typed else _inputs.relative_names(split.names, inputs)
        _show(answers, [captions[i] for i in readable], model.measure, unknown)
    if sort_into is not None:
        _sort(sort_into, answers, link)
    if unknown is not None:
        _warn_of_few_rows(model, unknown)
    terminal.skipped(embedded.skipped)
    if _inputs.STANDARD_INPUT in inputs and model.calibrated:
        from imprint.cli.watch import monitor_stream

        monitor_stream(model, answers)
    terminal.end(embedded.skipped)


def _warn_of_few_rows(model: "Imprinter", unknown: float) -> None:
    """Say where the model has too few training rows to refuse anything at this level."""
    from imprint.calibration import CrossValidation
    from imprint.calibration.caveats import p_value_caveat

    folds, things = model.state.head.imprinted.folds, model.embedder.kind.plural
    sentence = p_value_caveat(folds, unknown, things, "use --unknown") if isinstance(folds, CrossValidation) else None
    if sentence is not None:
        terminal.note(sentence)


def _show(answers: list[dict[str, Any]], captions: Sequence[str], measure: str, unknown: float | None) -> None:
    rows, reasons = [], []
    for caption, answer in zip(captions, answers):
        if "labels" in answer:
            answer = _tags_in_words(answer)
        others = ", ".join(f"{terminal.brief(g['label'])} {_percent(g['probability'])}" for g in answer["top"][1:])
        rejected = answer["label"] is None
        closest = answer["top"][0]["label"]
        label = f"{NONE} (closest: {closest})" if rejected else answer["label"]
        probability = "" if rejected else _percent(answer["probability"])
        if node := answer.get("node"):
            label, probability = f"{node['label']} (kind unknown; closest: {closest})", _percent(node["probability"])
        known = [] if answer["known"] is None else [f"{answer['known']:.3f}"]
        rows.append([caption, label, probability, *known, others])
        for r in answer.get("why", []):
            value = f"{r[measure]:+.3f}" if measure == "weight" else f"{r[measure]:.3f}"
            reasons.append([caption, r["label"], value, r["picture"] or "(not stored)"])
    known = [] if answers[0]["known"] is None else ["known"]
    terminal.table(["name", "class", "probability", *known, "others"], rows, right=["probability", *known])
    if reasons:
        title = TITLES.get(measure, measure)
        terminal.write("\n")
        terminal.table(["name", "proxy of", title, "closest training input"], reasons, right=[title])
        terminal.note(f"{title}: {MEANINGS[measure]}.")
    if unknown is not None and any(answer["label"] is None for answer in answers):
        terminal.note(KNOWN.format(unknown, 100 * unknown))


def _tags_in_words(answer: dict[str, Any]) -> dict[str, Any]:
    """An answer with the chosen labels and their probabilities as texts; the others come after the first."""
    if answer["label"] is None:
        return answer
    chosen = [guess["label"] for guess in answer["labels"]]
    others = [guess for guess in answer["top"] if guess["label"] not in chosen]
    words = {"label": ", ".join(map(str, chosen)) or "no label", "top": [answer["top"][0], *others]}
    return {**answer, **words, "probability": ", ".join(_percent(guess["probability"]) for guess in answer["labels"])}


def _sort(folder: Path, answers: list[dict[str, Any]], link: bool) -> None:
    from imprint.cli._sorting import sort_into

    done = sort_into(folder, ((a["path"], _refused(a) if a["label"] is None else a["label"]) for a in answers), link)
    terminal.note(f"{folder}: {terminal.count(done, 'file')} {'linked' if link else 'copied'}.")


def _refused(answer: dict[str, Any]) -> str:
    """The folder of a rejected file, below which its node, where it has one, is a folder."""
    return f"{NONE}/{answer['node']['label']}" if answer.get("node") else NONE


def _percent(p: float | str) -> str:
    return p if isinstance(p, str) else f"{100 * p:.1f} %"
