"""Classify images, texts, sounds or embeddings.

If some inputs cannot be read, they are named, the others are classified, and the exit
code is 1.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from typer import Argument, Option

from imprint.calibration.estimates import SIGNIFICANCE_LEVEL, cannot_tell
from imprint.cli import files, models, options, recordings, terminal
from imprint.cli.commands.watch import CANNOT_TELL, monitor_stream
from imprint.cli.options import NONE_OF_THESE
from imprint.cli.terminal import NO_BREAK, percent
from imprint.core.errors import FileError, ParameterError, UnreadableInput
from imprint.core.files.atomic import expanded
from imprint.core.files.copies import copy_files, folder_name
from imprint.datasets import Split
from imprint.datasets.files import ZipInputs
from imprint.datasets.tables import read_rows, table_suffix
from imprint.imprinter import Imprinter
from imprint.imprinter.predictor import predictions

MAX_REASONS = 3
MAX_STEM = 60  # characters of the name of an input in that of its map
MAP_COLOURS = "orange for the predicted class, violet for the second"
MIN_SHOWN = 0.0005  # probability of another class in a table: 0.1 %, rounded
MEASURES = {
    "similarity": ("similarity", "the larger, the closer"),
    "distance": ("distance", "the smaller, the closer"),
    "weight": (
        "contribution",
        "how much the proxy adds to the score of the most probable class",
    ),
}
"""What the values of `--why` are called, and what they mean."""
KNOWN_NOTE = (
    "known: conformal p-value of belonging to one of the classes; below {:g} for about"
    " {:g} % of inputs that do, up to four times as many where they differ from the"
    " training data."
)


def command(
    file: Path = options.MODEL,
    arguments: list[str] = Argument(
        metavar="INPUT",
        help=(
            "Files, folders or a .zip of images or sounds; texts, or a table of"
            " texts; a table of embeddings; or - for standard input: one text or path"
            " per line, or an image. A name that exists or has a known suffix is a"
            " file."
        ),
    ),
    unknown: float | None = Option(
        None,
        metavar="P",
        min=0,
        max=1,
        help=(
            f"Answer '{NONE_OF_THESE}' if the p-value `known` is below P; in a tree of"
            " classes, answer with the deepest node that is still likely. With 0.05,"
            " about 5 % of the inputs that belong to a class are rejected (measured:"
            " 4 to 6 % of inputs like the training data, 1 to 19 % of others)."
        ),
        rich_help_panel=options.ANSWER_SECTION,
    ),
    top: int = Option(
        3,
        min=1,
        help=(
            "Number of classes to show for each input; a table leaves out those below"
            " 0.1 %."
        ),
        rich_help_panel=options.ANSWER_SECTION,
    ),
    level: int | None = Option(
        None,
        metavar="N",
        min=1,
        help="Answer with the node at level N of a tree of classes; 1 is the top.",
        rich_help_panel=options.ANSWER_SECTION,
    ),
    why: bool = Option(
        False,
        "--why",
        help="Show the proxies that contribute most, and a training input of each.",
        rich_help_panel=options.ANSWER_SECTION,
    ),
    maps: Path | None = Option(
        None,
        metavar="DIR",
        help=(
            "Write what speaks for the predicted class and against the second, for each"
            " input: a map over an image (PNG), or the words of a text and the times"
            " of a sound or series (HTML)."
        ),
        rich_help_panel=options.ANSWER_SECTION,
    ),
    csv: bool = Option(
        False,
        "--csv",
        help=(
            "CSV on standard output; to the rows of a table, columns are appended. A"
            " cell that looks like a formula gets a leading apostrophe."
        ),
        rich_help_panel=options.OUTPUT_SECTION,
    ),
    sort_into: Path | None = Option(
        None,
        metavar="DIR",
        help=(
            "Copy every file into the sub-folder of its class; never overwrites a file."
        ),
        rich_help_panel=options.OUTPUT_SECTION,
    ),
    link: bool = Option(
        False,
        "--link",
        help="With --sort-into: link instead of copying.",
        rich_help_panel=options.OUTPUT_SECTION,
    ),
    text: bool = Option(
        False,
        "--text",
        help="Every INPUT is a text, even if it looks like a file.",
        rich_help_panel=options.DATA_SECTION,
    ),
    *,
    table: options.UnlabelledColumns,
    cut: recordings.WindowOptions,
    json: bool = options.JSON,
    network: options.NetworkOfModel,
) -> int:
    if csv and not text:
        files.check_csv("predict", arguments)
    model = Imprinter.load(file, mapped=True, **vars(network))
    head, kind = model.state.head, model.embedder.kind
    windows = cut.windows(model)
    if windows is not None:
        others = (csv, why, sort_into, level, maps)
        if any(option not in (None, False) for option in others):
            raise ParameterError(
                "--window goes with --unknown and --json; leave out --csv, --why,"
                " --level, --maps and --sort-into."
            )
        return recordings.predict_recordings(
            model, arguments, windows, unknown=unknown, as_json=json
        )
    if sort_into is not None and (head.tags or kind.typed or not kind.needs_backbone):
        raise ParameterError(
            "--sort-into: only files, such as images, with one label each are sorted;"
            " use --csv."
        )
    if sort_into is not None and unknown and NONE_OF_THESE in head.labels:
        raise ParameterError(
            f"--sort-into: the model has a class '{NONE_OF_THESE}', whose folder would"
            " also get the rejected inputs; leave out --unknown, or use --csv."
        )
    if maps is not None and not kind.needs_backbone:
        raise ParameterError("--maps: embeddings have no parts to explain.")
    if level is not None:
        model.tree.level(level)  # raises before the work if the tree has no such level
    with terminal.progress_bars() as bars:
        split = models.read_inputs(arguments, kind, table, text)
        models.note_ignored(split)
        if sort_into is not None and isinstance(split.inputs, ZipInputs):
            raise ParameterError(
                "--sort-into: the inputs of a .zip are not files; unpack it first."
            )
        embedded = model.look(split, bars.embedding())
    if not len(embedded.X):
        raise UnreadableInput(embedded.skipped[0].name, embedded.skipped[0].reason)
    readable = embedded.readable.tolist()
    answers = predictions(head, embedded, top=top, unknown=unknown, level=level)
    if why:
        for i, answer in enumerate(answers):
            reasons = model.why(embedded._replace(X=embedded.X[i : i + 1]), MAX_REASONS)
            answer["why"] = [
                {"label": r.label, model.measure: r.value, "image": r.image}
                for r in reasons
            ]
    if maps is not None:
        write_maps(maps, model, split, readable, answers)
    if json:
        terminal.emit(answers)
    elif csv and not text and table_suffix(arguments[0]):
        _write_csv(
            answers,
            [row for _, row in read_rows(expanded(arguments[0]), table.encoding)],
            readable,
        )
    elif csv:
        _write_csv(
            answers,
            [{"path": answer["path"]} for answer in answers],
            range(len(answers)),
        )
    else:
        captions = models.captions(split, arguments)
        _show(answers, [captions[i] for i in readable], model, unknown)
    if sort_into is not None:
        folders = [files.class_folder(_class_of(answer)) for answer in answers]
        paths = [answer["path"] for answer in answers]
        copied = copy_files(sort_into, zip(paths, folders), link=link)
        terminal.note(
            f"{sort_into}: {terminal.count(copied, 'file')}"
            f" {'linked' if link else 'copied'}."
        )
    if head.calibrated:
        threshold = _level_of(unknown)
        remedy = "use --unknown"
        terminal.note(cannot_tell(head.calibration, threshold, kind.plural, remedy))
    if models.STANDARD_INPUT in arguments and model.calibrated:
        monitor_stream(model, answers)
    return terminal.report_skipped(embedded.skipped)


def write_maps(
    folder: Path,
    model: Imprinter,
    split: Split,
    readable: Sequence[int],
    answers: list[dict[str, Any]],
) -> None:
    """Write the explanation of each input, and name its file in the answer."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise FileError(f"Cannot write to {folder}: {e.strerror}.") from None
    width = len(str(len(split)))
    written = 0
    with terminal.progress_bars() as bars:
        for done, (i, answer) in enumerate(zip(readable, answers)):
            bars.step("Explaining", done, len(answers))
            answer["map"] = None
            try:
                explanation = model.explain_read(split.inputs[i])
            except (ParameterError, UnreadableInput) as e:
                terminal.note(f"No map of {answer['path']}: {e}")
                continue
            number = f"{i + 1:0{width}d}"
            stem = folder_name(Path(answer["path"]).stem)[:MAX_STEM]
            path = folder / f"{number}-{stem}{explanation.suffix}"
            explanation.save(path)
            answer["map"] = str(path)
            written += 1
    terminal.note(f"{folder}: {terminal.count(written, 'map')}, {MAP_COLOURS}.")


def _level_of(unknown: float | None) -> float:
    """The level of p-values below which inputs are, or usually would be, refused."""
    return SIGNIFICANCE_LEVEL if unknown is None else unknown


def _class_of(answer: dict[str, Any]) -> object:
    """The class of a sorted file; a rejected one is below `none of these`, at its node
    where it has one.
    """
    if answer["label"] is not None:
        return answer["label"]
    return (
        f"{NONE_OF_THESE}/{answer['node']['label']}"
        if answer.get("node")
        else NONE_OF_THESE
    )


def _show(
    answers: list[dict[str, Any]],
    captions: Sequence[str],
    model: Imprinter,
    unknown: float | None,
) -> None:
    known = [] if answers[0]["known"] is None else ["known"]
    head = model.state.head
    is_told = not known or not head.calibration.missing_rows(_level_of(unknown))
    measure, are_paths = model.measure, not model.embedder.kind.typed
    title, meaning = MEASURES[measure]
    rows, reasons = [], []
    for caption, answer in zip(captions, answers):
        label, probability, others = _described(answer)
        is_refused = "labels" not in answer and answer["label"] is None
        rows.append(
            [
                caption,
                terminal.refused(label) if is_refused else label,
                probability,
                *(f"{answer[name]:.3f}" if is_told else CANNOT_TELL for name in known),
                others,
            ]
        )
        for r in answer.get("why", []):
            value = f"{r[measure]:{'+' if measure == 'weight' else ''}.3f}"
            reasons.append(
                [
                    caption,
                    terminal.brief(r["label"]),
                    value,
                    r["image"] or "(not stored)",
                ]
            )
    columns = [
        "name",
        "labels" if model.state.head.tags else "class",
        "probability",
        *known,
        "others",
    ]
    if not any(row[-1] for row in rows):
        columns.pop()
        rows = [row[:-1] for row in rows]
    terminal.table(columns, rows, right=["probability", *known], names=are_paths)
    if reasons:
        terminal.write("\n")
        terminal.table(
            ["name", "proxy of", title, "closest training input"],
            reasons,
            right=[title],
            names=are_paths,
        )
        terminal.note(f"{title}: {meaning}.")
    if unknown is not None and any(answer["label"] is None for answer in answers):
        terminal.note(KNOWN_NOTE.format(unknown, 100 * unknown))


def _described(answer: dict[str, Any]) -> tuple[str, str, str]:
    """The class or labels of an answer, their probabilities, and the other classes."""
    chosen, top = _chosen(answer), answer["top"]
    label = ", ".join(str(guess["label"]) for guess in chosen) or "no label"
    others = [guess for guess in top if guess not in chosen]
    if answer["label"] is None:
        closest, others = terminal.brief(top[0]["label"]), top[1:]
        node = answer.get("node")
        answered = f"{node['label']} (kind unknown; " if node else f"{NONE_OF_THESE} ("
        label = f"{answered}closest: {closest})"
        chosen = [node] if node else []
    probability = ", ".join(percent(guess["probability"]) for guess in chosen)
    return (
        label,
        probability,
        ", ".join(
            f"{terminal.brief(guess['label'])}{NO_BREAK}{percent(guess['probability'])}"
            for guess in others
            if guess["probability"] >= MIN_SHOWN
        ),
    )


def _chosen(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """The predicted class or labels with their probabilities; empty if the input is
    rejected.
    """
    if "labels" in answer:
        return list(answer["labels"])
    return [] if answer["label"] is None else answer["top"][:1]


def _write_csv(
    answers: list[dict[str, Any]], rows: list[dict[str, Any]], numbers: Sequence[int]
) -> None:
    """Rows, such as those of a user's table, as CSV, with the answers for some of them,
    by number, appended.
    """
    cells = dict(zip(numbers, map(_csv_cells, answers)))
    columns = list(dict.fromkeys(name for row in rows for name in row))
    added = list(cells[numbers[0]])
    header = [
        *columns,
        *(f"predicted_{name}" if name in columns else name for name in added),
    ]
    lines = [
        [*map(row.get, columns), *map(cells.get(i, {}).get, added)]
        for i, row in enumerate(rows)
    ]
    terminal.write_spreadsheet([header, *lines])


def _csv_cells(answer: dict[str, Any]) -> dict[str, Any]:
    """The label, probability and p-value of an answer, and the node of a rejected one;
    empty where there is none.
    """
    probability = "|".join(str(guess["probability"]) for guess in _chosen(answer))
    cells = {
        "label": answer["label"],
        "probability": probability,
        "known": answer["known"],
    }
    if "node" in answer:
        cells["node"] = answer["node"] and answer["node"]["label"]
    return cells
