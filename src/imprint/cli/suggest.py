"""`imprint suggest`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from imprint.cli import _options as options
from imprint.cli import _terminal as terminal

if TYPE_CHECKING:
    from imprint.active import Suggestions
    from imprint.datasets import Split
    from imprint.head import Decider
    from imprint.imprinter import Embedded, Imprinter

ASK_EVERY = 10
"""Answers after which the suggestions are computed again."""


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
    backbone: options.Network = None,
    device: options.Device = "cpu",
    threads: options.Threads = None,
    cache: options.Cache = True,
) -> None:
    """Choose which unlabelled inputs to label next.

    The inputs are listed with the most useful first, and a reason for each. Near-duplicates are suggested once. Inputs
    that cannot be read are named, and the exit code is 1.
    """
    from imprint.cli._files import check_csv, check_page
    from imprint.core.errors import ParameterError, UnreadableInput
    from imprint.datasets.files import FileInputs

    if csv:
        check_csv("suggest", arguments)
    if len(arguments) > 2:
        raise ParameterError(f"suggest: {len(arguments)} arguments; give [FILE] POOL, a model and one pool.")
    if page is not None:
        check_page(page)
    model = _model(arguments, backbone, device, threads, cache)
    pool, embedded = _embed(model, arguments[-1], text_column)
    if not len(embedded.X):
        raise UnreadableInput(embedded.skipped[0].name, embedded.skipped[0].reason)
    if copy_into is not None and not isinstance(pool.inputs, FileInputs):
        raise ParameterError("suggest(--copy-into): the inputs of a table are not files that can be copied.")
    if ask:
        from imprint.cli._asking import ask_for_labels

        ask_for_labels(model, pool, embedded, n, copy_into)
    else:
        suggestions = suggest_from(model, embedded, n)
        _write(pool, suggestions, arguments[-1], json, csv)
        if page is not None:
            from imprint.evaluation.page import write_suggestions

            write_suggestions(page, f"Label these of {arguments[-1]} next", pool, suggestions)
            terminal.note(f"The page: {page}, {terminal.bytes_of(page)}.")
        if copy_into is not None:
            _copy(copy_into, [pool.names[i] for i in suggestions.tolist()])
    terminal.skipped(embedded.skipped)
    terminal.end(embedded.skipped)


def suggest_from(model: "Imprinter", embedded: "Embedded", n: int) -> "Suggestions":
    """Numbers of the inputs of a pool; without a fitted model, those to label first."""
    from imprint.active import suggest

    return suggest(embedded.X, n, head=fitted_head(model)).among(len(embedded.X), embedded.skipped)


def fitted_head(model: "Imprinter") -> "Decider | None":
    """The head of a model; None before its first label."""
    from imprint.core.errors import NotFittedError

    try:
        return model.state.head
    except NotFittedError:
        return None


def label_next(model: "Imprinter", folder: Path, n: int = 10) -> None:
    """The inputs of a pool that `imprint fit` suggests to label next."""
    pool, embedded = _embed(model, str(folder), None)
    if len(embedded.X):
        suggestions = suggest_from(model, embedded, n)
        terminal.note("Label these next:")
        for i, reason in zip(suggestions.tolist(), suggestions.reasons):
            terminal.note(f"  {pool.names[i]}  ({reason})")


def _model(arguments: list[str], backbone: str | None, device: str, threads: int | None, cache: bool) -> "Imprinter":
    from imprint.cli._files import check_model
    from imprint.imprinter import Imprinter

    if len(arguments) == 1:
        return Imprinter(backbone, device=device, threads=threads, cache=cache)
    file = Path(arguments[0])
    check_model(file)
    return Imprinter.load(file, backbone=backbone, device=device, threads=threads, cache=cache)


def _embed(model: "Imprinter", path: str, text_column: str | None) -> tuple["Split", "Embedded"]:
    """The inputs of a pool, named as a user would open them, and their embeddings."""
    from imprint import datasets
    from imprint.cli._files import check_home

    folder = Path(path).expanduser()
    if folder.is_dir() and not any(folder.glob("train.*")):
        pool = datasets.load_files([folder])
    else:
        pool = datasets.load(path, "train", labelled=False, text_column=text_column)
    with terminal.bars() as bars:
        model.embedder.choose(pool.kind)
        if model.embedder.cache and pool.kind.needs_backbone:
            check_home()
        return pool, model.look(pool, bars.embedding())


def _write(pool: "Split", suggestions: "Suggestions", path: str, json: bool, csv: bool) -> None:
    from imprint.cli._inputs import relative_names

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


def _copy(folder: Path, files: list[str]) -> None:
    from imprint.cli._sorting import copy_files

    terminal.note(f"{folder}: {terminal.count(copy_files(folder, files), 'file')} copied.")
