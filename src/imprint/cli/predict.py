"""`imprint predict`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from imprint.calibration import CrossValidation
from imprint.calibration.caveats import p_value_caveat
from imprint.cli import _inputs
from imprint.cli import _options as options
from imprint.cli import _terminal as terminal
from imprint.cli._files import check_csv, check_model
from imprint.cli._progress import progress_bars
from imprint.cli._sorting import copy_files, folder_of
from imprint.cli._terminal import percent
from imprint.cli.watch import monitor_stream
from imprint.core.errors import ParameterError, UnreadableInput
from imprint.datasets.tables.reading import read_rows
from imprint.imprinter import Imprinter
from imprint.imprinter.predictions import predictions

MAX_REASONS = 3
NONE = "none of these"
MEANINGS = {
    "similarity": "the larger, the closer",
    "distance": "the smaller, the closer",
    "weight": "how much the proxy adds to the score of the most probable class",
}
TITLES = {"weight": "contribution"}
KNOWN = "known: conformal p-value of belonging to one of the classes; below {0:g} for about {1:g} % of inputs that do."
CSV_COLUMNS = ["label", "probability", "known"]


def command(
    file: options.Model,
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="INPUT",
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
    top: Annotated[int, typer.Option(help="Number of classes to show for each input.", min=1)] = 3,
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
    backbone: options.MovedBackbone = None,
    device: options.Device = "cpu",
    threads: options.Threads = None,
    cache: options.Cache = True,
) -> None:
    """Classify pictures, texts, sounds or embeddings.

    Inputs that cannot be read are listed, the others are classified, and the exit code is 1.
    """
    check_model(file)
    if csv:
        check_csv("predict", inputs)
    model = Imprinter.load(file, backbone=backbone, device=device, threads=threads, cache=cache)
    kind = model.embedder.kind
    if sort_into is not None and model.state.head.tags:
        raise ParameterError("--sort-into: an input of a model of tags has several labels; use --csv.")
    if sort_into is not None and (kind.typed or not kind.needs_backbone):
        raise ParameterError(f"--sort-into: only files, such as pictures, are sorted; this model reads {kind.plural}.")
    if level is not None:
        model.tree.level(level)  # raises before the work if the tree has no such level
    with progress_bars() as bars:
        split = _inputs.inputs(inputs, kind, text_column, text)
        embedded = model.look(split, bars.embedding())
    if not len(embedded.X):
        raise UnreadableInput(embedded.skipped[0].name, embedded.skipped[0].reason)
    readable = np.delete(np.arange(len(split)), [s.index for s in embedded.skipped]).tolist()
    answers = predictions(model.state.head, model.tree, embedded, top=top, unknown=unknown, level=level)
    if why:
        for i, answer in enumerate(answers):
            reasons = model.why(embedded._replace(X=embedded.X[i : i + 1]), MAX_REASONS)
            answer["why"] = [{"label": r.label, model.measure: r.value, "picture": r.picture} for r in reasons]
    if json:
        terminal.emit(answers)
    elif csv and not text and _inputs.is_table(inputs[0]):
        _append_to_table(Path(inputs[0]), dict(zip(readable, answers)))
    elif csv:
        columns = _csv_columns(answers)
        terminal.write_csv(["path", *columns], [[answer["path"], *_csv_cells(answer)] for answer in answers])
    else:
        captions = split.captions if kind.typed else _inputs.relative_names(split.names, inputs)
        _show(answers, [captions[i] for i in readable], model.measure, unknown)
    if sort_into is not None:
        copied = copy_files(((a["path"], folder_of(sort_into, _class_of(a))) for a in answers), link)
        terminal.note(f"{sort_into}: {terminal.count(copied, 'file')} {'linked' if link else 'copied'}.")
    folds = model.state.head.imprinted.folds
    if unknown is not None and isinstance(folds, CrossValidation):
        for sentence in filter(None, [p_value_caveat(folds, unknown, kind.plural, "use --unknown")]):
            terminal.note(sentence)
    if _inputs.STANDARD_INPUT in inputs and model.calibrated:
        monitor_stream(model, answers)
    terminal.finish(embedded.skipped)


def _show(answers: list[dict[str, Any]], captions: Sequence[str], measure: str, unknown: float | None) -> None:
    rows, reasons = [], []
    for caption, answer in zip(captions, answers):
        if "labels" in answer:
            answer = _with_tags_as_text(answer)
        others = ", ".join(f"{terminal.brief(g['label'])} {percent(g['probability'])}" for g in answer["top"][1:])
        rejected = answer["label"] is None
        closest = answer["top"][0]["label"]
        label = f"{NONE} (closest: {closest})" if rejected else answer["label"]
        probability = "" if rejected else answer.get("probabilities", percent(answer["probability"]))
        if node := answer.get("node"):
            label, probability = f"{node['label']} (kind unknown; closest: {closest})", percent(node["probability"])
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


def _with_tags_as_text(answer: dict[str, Any]) -> dict[str, Any]:
    """An answer whose label and probability list the predicted tags; its `top` lists the others after the first."""
    if answer["label"] is None:
        return answer
    chosen = [guess["label"] for guess in answer["labels"]]
    others = [guess for guess in answer["top"] if guess["label"] not in chosen]
    words = {"label": ", ".join(map(str, chosen)) or "no label", "top": [answer["top"][0], *others]}
    return {**answer, **words, "probabilities": ", ".join(percent(guess["probability"]) for guess in answer["labels"])}


def _class_of(answer: dict[str, Any]) -> object:
    """The class of a sorted file; a rejected one is below `none of these`, at its node where it has one."""
    if answer["label"] is not None:
        return answer["label"]
    return f"{NONE}/{answer['node']['label']}" if answer.get("node") else NONE


def _csv_columns(answers: Sequence[dict[str, Any]]) -> list[str]:
    return [*CSV_COLUMNS, "node"] if any("node" in answer for answer in answers) else CSV_COLUMNS


def _csv_cells(answer: dict[str, Any]) -> list[Any]:
    """The label, probability and p-value of an answer, and the node of a rejected one; empty where there is none."""
    known = "" if answer["known"] is None else answer["known"]
    node = [answer["node"]["label"] if answer["node"] else ""] if "node" in answer else []
    probability = answer["probability"]
    if "labels" in answer:
        probability = "|".join(str(guess["probability"]) for guess in answer["labels"])
    return [*(["", ""] if answer["label"] is None else [answer["label"], probability]), known, *node]


def _append_to_table(path: Path, answers: dict[int, dict[str, Any]]) -> None:
    """Write the user's table with the answers as further columns."""
    rows = [values for _, values in read_rows(path)]
    columns = list(dict.fromkeys(name for values in rows for name in values))
    added = [f"predicted_{name}" if name in columns else name for name in _csv_columns(list(answers.values()))]
    cells = {i: _csv_cells(answer) for i, answer in answers.items()}
    empty = [""] * len(added)
    lines = [[*(values.get(c) for c in columns), *cells.get(i, empty)] for i, values in enumerate(rows)]
    terminal.write_csv([*columns, *added], lines)
