"""`imprint suggest`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from imprint import datasets
from imprint.active import Suggestions, suggest
from imprint.cli import _options as options
from imprint.cli import _terminal as terminal
from imprint.cli._asking import ask_for_labels
from imprint.cli._files import check_csv, check_model, check_page, choose_backbone
from imprint.cli._inputs import relative_names
from imprint.cli._progress import progress_bars
from imprint.cli._sorting import copy_files
from imprint.core.errors import ParameterError, UnreadableInput
from imprint.datasets import Split
from imprint.datasets.files import FileInputs
from imprint.evaluation.page import write_suggestions
from imprint.imprinter import Embedded, Imprinter


def command(
    arguments: Annotated[
        list[str],
        typer.Argument(
            metavar="[FILE] POOL",
            help="A model that `imprint fit` wrote, and the unlabelled inputs: a folder of pictures or sounds, a table "
            "of texts or embeddings, .npz or .npy. Without a model, the suggestions are for the first labels.",
            show_default=False,
        ),
    ],
    n: Annotated[int, typer.Option("-n", help="How many inputs to suggest.", min=1)] = 10,
    ask: Annotated[
        bool,
        typer.Option(
            "--ask", help="Ask for the class of each input and write the answers as CSV; Ctrl-C keeps those given."
        ),
    ] = False,
    copy_into: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Copy the files there (with --ask: into a sub-folder per class)."),
    ] = None,
    page: options.Page = None,
    csv: Annotated[bool, typer.Option("--csv", help="CSV on standard output, for spreadsheets.")] = False,
    json: options.Json = False,
    text_column: options.TextColumn = None,
    backbone: options.Backbone = None,
    device: options.Device = "cpu",
    threads: options.Threads = None,
    cache: options.Cache = True,
) -> None:
    """Choose which unlabelled inputs to label next.

    The inputs are listed with the most useful first, and a reason for each. Near-duplicates are suggested once. Inputs
    that cannot be read are named, and the exit code is 1.
    """
    if csv:
        check_csv("suggest", arguments)
    if len(arguments) > 2:
        raise ParameterError(f"suggest: {len(arguments)} arguments; give [FILE] POOL, a model and one pool.")
    check_page(page)
    network: dict[str, Any] = {"backbone": backbone, "device": device, "threads": threads, "cache": cache}
    if len(arguments) == 2:
        check_model(Path(arguments[0]))
        model = Imprinter.load(arguments[0], **network)
    else:
        model = Imprinter(**network)
    pool, embedded = _embed(model, arguments[-1], text_column)
    if not len(embedded.X):
        raise UnreadableInput(embedded.skipped[0].name, embedded.skipped[0].reason)
    if copy_into is not None and not isinstance(pool.inputs, FileInputs):
        raise ParameterError("suggest(--copy-into): the inputs of a table are not files that can be copied.")
    if ask:
        ask_for_labels(model, pool, embedded, n, copy_into)
    else:
        suggestions = _suggest(model, embedded, n)
        _write(pool, suggestions, arguments[-1], json, csv)
        if page is not None:
            write_suggestions(page, f"Label these of {arguments[-1]} next", pool, suggestions)
        terminal.name_page(page)
        if copy_into is not None:
            copied = copy_files((pool.names[i], copy_into) for i in suggestions.tolist())
            terminal.note(f"{copy_into}: {terminal.count(copied, 'file')} copied.")
    terminal.finish(embedded.skipped)


def _suggest(model: Imprinter, embedded: Embedded, n: int) -> Suggestions:
    """The indices of inputs of a pool; without a fitted model, of those to label first."""
    head = model.state.head if model.fitted else None
    return suggest(embedded.X, n, head=head).among(len(embedded.X), embedded.skipped)


def label_next(model: Imprinter, folder: Path, n: int = 10) -> None:
    """The inputs of a pool that `imprint fit` suggests to label next."""
    pool, embedded = _embed(model, str(folder), None)
    if len(embedded.X):
        suggestions = _suggest(model, embedded, n)
        terminal.note("Label these next:")
        for i, reason in zip(suggestions.tolist(), suggestions.reasons):
            terminal.note(f"  {pool.names[i]}  ({reason})")


def _embed(model: Imprinter, path: str, text_column: str | None) -> tuple[Split, Embedded]:
    """The inputs of a pool, named as a user would open them, and their embeddings."""
    folder = Path(path).expanduser()
    if folder.is_dir() and not any(folder.glob("train.*")):
        pool = datasets.load_files([folder])
    else:
        pool = datasets.load(path, "train", labelled=False, text_column=text_column)
    with progress_bars() as bars:
        choose_backbone(model, pool.kind)
        return pool, model.look(pool, bars.embedding())


def _write(pool: Split, suggestions: Suggestions, path: str, json: bool, csv: bool) -> None:
    numbers = suggestions.tolist()
    entries = [{"path": pool.names[i], "row": i, "reason": reason} for i, reason in zip(numbers, suggestions.reasons)]
    if json:
        terminal.emit(entries)
    elif csv:
        texts = {"text": [pool.inputs[i] for i in numbers], "label": [""] * len(numbers)}
        columns: dict[str, list[Any]] = {name: [e[name] for e in entries] for name in ("path", "row", "reason")}
        columns |= texts if pool.kind.typed else {}
        terminal.write_csv(list(columns), zip(*columns.values()))
    else:
        captions = pool.captions if pool.kind.typed else relative_names(pool.names, [path])
        terminal.table(["name", "reason"], [(captions[i], reason) for i, reason in zip(numbers, suggestions.reasons)])
