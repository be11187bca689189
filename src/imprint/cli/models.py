"""Functions that commands about models share: reading and embedding inputs, evaluation,
and the report on a model.
"""

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from imprint import datasets
from imprint.cli import files, terminal
from imprint.cli.options import TagColumns, UnlabelledColumns
from imprint.core.errors import FileError, ParameterError, reporting
from imprint.core.files.atomic import atomic_write, expanded
from imprint.core.label_sets import indicator
from imprint.datasets import Split
from imprint.datasets.folder import ARCHIVE
from imprint.datasets.split import NO_LABELS, plain_labels
from imprint.datasets.tables import first_row, load_table, table_suffix
from imprint.datasets.tables.composed import kind_of_columns
from imprint.datasets.tables.values import INTEGER
from imprint.evaluation.evaluation import (
    Evaluation,
    describe_expected,
    evaluation,
    unreadable,
)
from imprint.evaluation.labelled_rows import LabelledRows
from imprint.evaluation.tags import TagEvaluation, tag_evaluation
from imprint.imprinter import Embedded, Imprinter
from imprint.imprinter.items import PythonInputs
from imprint.modalities import Modality, of_file
from imprint.tags import TagHead

STANDARD_INPUT = "-"
PACK = ".npz"
Result = Evaluation | TagEvaluation


def read_inputs(
    arguments: Sequence[str],
    kind: Modality,
    table: UnlabelledColumns,
    texts: bool = False,
) -> Split:
    """The inputs of a model, without labels; with `texts` every argument is a text.

    Otherwise an argument that exists as a file, or ends like one, is a file. A file
    that does not exist is an unreadable input, unless there is nothing else.
    """
    if texts and not kind.typed:
        raise ParameterError(f"--text: this model reads {kind.plural}, not texts.")
    values: list[Any] = []
    for word in arguments:
        values += (
            _standard_input(kind)
            if word == STANDARD_INPUT
            else [word if texts else _text_or_path(word, kind, len(arguments) == 1)]
        )
    if not values:
        raise ParameterError("predict: standard input has no lines.")
    paths = [value for value in values if isinstance(value, Path)]
    if not kind.needs_backbone or (kind.typed and any(map(table_suffix, paths))):
        return _load_rows(values, kind, table)
    if len(values) == 1 and paths and holds_several(paths[0], kind):
        return _load_rows(values, kind, table)
    is_archive = any(path.suffix.lower() == ARCHIVE for path in paths)
    if is_archive and len(values) > 1:
        raise ParameterError(
            f"predict: give one {ARCHIVE} at a time, not {len(values)} arguments."
        )
    if is_archive:
        return datasets.load_files(paths, kind.name)
    if not kind.typed and len(paths) == len(values):
        return datasets.load_files(paths, kind.name)
    items: list[Any] = []
    for value in values:
        is_folder = isinstance(value, Path) and value.is_dir()
        items += (
            map(Path, datasets.load_files([value], kind.name).names)
            if is_folder
            else [value]
        )
    names = [
        "standard input" if isinstance(item, bytes) else str(item) for item in items
    ]
    names = [
        name if name.strip() else kind.name_of(name, i) for i, name in enumerate(names)
    ]
    return Split(PythonInputs(kind, items), NO_LABELS, names, (), kind.name)


def captions(split: Split, arguments: Sequence[str]) -> Sequence[str]:
    """How a terminal shows inputs: texts with their words, files relative to the folder
    among the arguments.

    The names of files in several folders are relative to the common parent of these
    folders.
    """
    folders = [
        os.path.expanduser(word)
        for word in arguments
        if os.path.isdir(os.path.expanduser(word))
    ]
    if (
        split.kind.typed
        or not folders
        or len({os.path.isabs(folder) for folder in folders}) > 1
    ):
        return split.captions
    root = os.path.commonpath(folders) + os.sep
    return [name.removeprefix(root) for name in split.names]


def note_ignored(split: Split) -> None:
    """Name the files that were left out because they are of another kind."""
    if split.ignored:
        terminal.note(f"Ignored {split.ignored_files}.")


def _load_rows(
    values: Sequence[Any], kind: Modality, table: UnlabelledColumns
) -> Split:
    """All rows of one table, without their labels; they may belong to any split."""
    if len(values) > 1:
        raise ParameterError(
            f"predict: give one table at a time, not {len(values)} arguments."
        )
    path = Path(values[0])
    if not path.exists():
        raise FileError(
            f"There is no file {path}; a model of {kind.plural} reads a table, a .npz"
            " or a .npy file."
        )
    if table_suffix(path):
        return load_table(path, None, labelled=False, **vars(table))
    split: Split = datasets.load(path, labelled=False, **vars(table))
    return split


def holds_several(path: Path, kind: Modality) -> bool:
    """Whether a file holds several inputs of a modality that has files of its own."""
    if not path.is_file() or kind.typed or not kind.needs_backbone:
        return False
    if path.suffix.lower() in {*kind.collection_suffixes, PACK}:
        return True
    if table_suffix(path) is None:
        return False
    has_one = path.suffix.lower() in kind.suffixes()
    try:
        _, row = first_row(path)
    except FileError:
        return not has_one
    return kind_of_columns(row, None, None) == kind or not has_one


def _text_or_path(word: str, kind: Modality, is_only: bool) -> str | Path:
    """An argument as a path; for a model of texts, as a text if there is no such file.

    A missing file is refused if it `is_only` one, or a table; others are unreadable.
    """
    path = expanded(word)
    if not kind.typed:
        return path
    if not word.strip():  # the path "" is the current folder
        return word
    exists = os.path.exists(path)  # False if it is longer than any file name
    if not exists and not is_only and not table_suffix(path) and of_file(word):
        return path
    if not exists and (table_suffix(path) or of_file(word)):
        raise FileError(
            f"There is no file {word}; to classify these words as a text, add --text."
        )
    return path if exists else word


def _standard_input(kind: Modality) -> list[Any]:
    """The lines of standard input, each a text or a path; or its bytes, if they are one
    input and not lines.
    """
    with reporting("read", "standard input"):
        if hasattr(sys.stdin, "buffer"):
            raw = sys.stdin.buffer.read()
        else:
            raw = sys.stdin.read().encode()
    try:
        lines = [line for line in raw.decode("utf-8-sig").splitlines() if line.strip()]
    except UnicodeDecodeError:
        if kind.typed or not kind.needs_backbone:
            raise ParameterError(
                "predict: standard input is not text in UTF-8."
            ) from None
        return [raw]
    if kind.typed:
        return list(lines)
    return [raw] if "\0" in "".join(lines) else [Path(line) for line in lines]


def choose_backbone(model: Imprinter, data: Split) -> None:
    """Choose the default backbone for some data if none was named; refuse a cache that
    cannot be written.
    """
    model.embedder.choose(data.kind, data)
    if model.embedder.cache and data.kind.needs_backbone:
        files.check_home()


def embed(
    model: Imprinter, data: str, columns: TagColumns, label: str | None = None
) -> tuple[Embedded, bool]:
    """The embeddings of labelled data, with progress, and whether the data have a test
    part. With a `label`, everything in the data is of that class.

    Prints a description of the data.
    """
    with terminal.progress_bars() as bars:
        nesting = model.embedder.nesting(
            model.classes_.tolist() if model.fitted else ()
        )
        if label is None:
            split = datasets.load(
                data,
                "train",
                progress=bars.download,
                tree=nesting,
                modality=model.embedder.requested,
                **vars(columns),
            )
        else:
            split = _load_class(model, data, columns, label)
        choose_backbone(model, split)
        backbone = f", by {model.embedder.spec}" if split.kind.needs_backbone else ""
        terminal.note(f"{split.found}{backbone}.")
        if has_test := "test" in split.parts:
            terminal.note(
                "The data have a train and a test part: this uses train; test is for"
                " evaluation."
            )
        rows = model.embedder.embed_labelled(split, progress=bars.embedding())
    for line in rows.notices:
        terminal.note(line)
    return rows, has_test


def _load_class(model: Imprinter, data: str, columns: TagColumns, label: str) -> Split:
    """Inputs without labels, all as one class of a fitted model."""
    integers = model.classes_.dtype.kind in "iu"
    if not label.strip():
        raise ParameterError("--as: give the name of a class.")
    if integers and not INTEGER.fullmatch(label):
        raise ParameterError(
            f"--as {label}: the classes of this model are integers; give one."
        )
    path = expanded(data)
    several = holds_several(path, model.embedder.kind)
    is_file = path.is_dir() or path.suffix.lower() == ARCHIVE or of_file(path)
    if model.embedder.kind.needs_backbone and is_file and not several:
        split = datasets.load_files([data], model.embedder.kind.name)
    else:
        split = datasets.load(
            data, labelled=False, modality=model.embedder.requested, **vars(columns)
        )
    name = int(label) if integers else label
    return replace(split, labels=plain_labels([name] * len(split)), classes=(name,))


def evaluate(model: Imprinter, rows: LabelledRows) -> Result:
    """The results of a model on labelled rows."""
    if isinstance(head := model.state.head, TagHead):
        return tag_evaluation(head, rows.X, rows.y, rows.paths, rows.skipped)
    P = head.probabilities(head.scores(rows.X))
    return evaluation(
        P, head.classes, rows.y, rows.paths, rows.skipped, tree=model.tree
    )


def write_page(path: Path, page: str) -> None:
    """Write the HTML of a page, and print its size."""
    with atomic_write(path) as f:
        f.write(page.encode())
    terminal.note(f"The page: {path}, {terminal.file_size(path)}.")


def label_of(model: Imprinter, text: str) -> Any:
    """The class of this name; labels may be numbers. Another text stays as it is."""
    labels = {str(label): label for label in model.classes_.tolist()}
    return labels.get(text, text)


def new_label(model: Imprinter, text: str) -> Any:
    """A text as a new label of the kind that the classes of the model have."""
    labels = model.classes_.tolist()
    kind = type(labels[0])
    if kind in (str, bool):
        return text
    try:
        return kind(text)
    except ValueError:
        raise ParameterError(
            f"{text!r} cannot name a class: the classes of this model are numbers."
        ) from None


def report(
    model: Imprinter,
    path: Path,
    json: bool,
    rows: Embedded | None = None,
    test_result: Result | None = None,
) -> None:
    """Print what the model file holds, and the next command."""
    head, kind, classes = model.state.head, model.embedder.kind, model.classes_
    rows_per_class: dict[str, int] = {}
    if rows is not None and rows.y is not None:
        labels, counts = np.unique(rows.y, return_counts=True)
        if rows.tags is not None:
            labels, counts = (
                np.asarray(rows.tags),
                indicator(rows.y.tolist(), rows.tags).sum(axis=0),
            )
        rows_per_class = dict(zip(map(str, labels.tolist()), counts.tolist()))
    proxies = len(head.proxies.labels)
    if json:
        facts = {
            "model": str(path),
            "classes": classes.tolist(),
            "proxies": proxies,
            "rows": rows_per_class,
        }
        if model.calibrated:
            values = [model.expected_accuracy_, *model.expected_interval_]
            accuracy, *interval = (
                round(value, 6) if np.isfinite(value) else None for value in values
            )
            facts |= {"expected_accuracy": accuracy, "expected_interval": interval}
        if test_result is not None:
            results = test_result.as_json().items()
            facts["test"] = {
                name: value for name, value in results if isinstance(value, int | float)
            }
        return terminal.emit(
            facts | {"skipped": unreadable(rows.skipped if rows else ())}
        )
    noun = "label" if head.tags else "class"
    if rows is not None:
        terminal.note(
            f"Imprinted {kind.count(len(rows.X))} of"
            f" {terminal.count(len(rows_per_class), noun)}."
        )
        if model.state.named:
            terminal.note(
                "The class names serve as one more example each (--no-names leaves them"
                " out)."
            )
    size = f"{terminal.count(len(classes), noun)}, {terminal.count(proxies, 'proxy')}"
    terminal.note(f"{path}: {size}, {terminal.file_size(path)}.")
    for line in describe_expected(head, kind.plural):
        terminal.note(line)
    if test_result is not None:
        terminal.note(f"{test_result.summary()} on the test part.")
    if len(classes) == 1 and not head.tags:
        terminal.note(
            "The model has one class: every input is classified as"
            f" {str(classes[0])!r}."
        )
        terminal.note(f"Next: {files.quoted('imprint', 'add', path, 'DATA')}")
    else:
        example = kind.noun.upper() if kind.needs_backbone else "TABLE"
        terminal.note(f"Next: {files.quoted('imprint', 'predict', path, example)}")
