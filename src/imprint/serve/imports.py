"""What is imported into a project: the classes of a model file, or the files of a folder per class."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from imprint.backbones import Backbone
from imprint.calibration import CrossValidation
from imprint.core.errors import FileError, ParameterError, UnreadableInput
from imprint.core.files import container
from imprint.core.label_sets import texts_of
from imprint.datasets import Split
from imprint.datasets.files import FileInputs
from imprint.estimator.persistence import head_from_parts
from imprint.head import Head
from imprint.imprinter import exemplars
from imprint.serve.labelled import clean_label
from imprint.serve.model import AND, IMPORTED, ModelBasis
from imprint.tags import TagHead

if TYPE_CHECKING:
    from imprint.serve.project import Project

AT_ONCE = 16  # number of inputs that are decoded and added at the same time
IMPORT = "import"  # the fact that holds the progress of the first import
UNFINISHED, FINISHED = "unfinished", "finished"
Report = Callable[[int, int], object]
WITHOUT_BACKBONE = "is a classifier of embeddings, without a backbone; the page needs a model with one."


def imported_basis(raw: bytes, name: str, backbone: Backbone) -> tuple[ModelBasis, list[str]]:
    """What a model file brings, with labels as texts, and its classes in order. Other files are refused."""
    document, arrays = container.parse(raw, name)
    stated = document.get("backbone")
    if not isinstance(stated, dict):
        raise FileError(f"{name} {WITHOUT_BACKBONE}")
    if "kept" in document:
        raise FileError(
            f"{name} keeps the pre-trained classes of its backbone, which the page does not show; use imprint predict, "
            f"or fit it without --keep-head."
        )
    if stated.get("fingerprint") != backbone.fingerprint:
        raise FileError(
            f"{name} was fitted with the backbone {stated.get('spec')}, and this page runs with "
            f"{backbone.record.name}; start another page with it: imprint serve {name}."
        )
    decider = head_from_parts(document, arrays, name)
    head, tags = decider.imprinted, decider if isinstance(decider, TagHead) else None
    if head.dtype != np.float32:
        raise FileError(f"{name} was fitted with double-precision embeddings, which this page does not compute.")
    try:
        stored = exemplars.from_parts(head, document["pictures"], arrays)
    except (KeyError, TypeError, ValueError):
        raise container.foreign(name) from None
    text_of = {k: AND.join(texts_of(k)) if decider.tags else str(k) for k in decider.owners.tolist()}
    for text in text_of.values():
        with suppress(ParameterError):
            if clean_label(text) == text:
                continue
        raise FileError(
            f"{name} has a class {text!r}, which cannot name a folder, as a class of the page must; fit the model "
            f"again with another name for it, or remove it: imprint forget {name} {text!r}."
        )
    states = {text_of[label]: state for label, state in zip(head.labels, head.states)}
    named = {
        text_of[label]: of_class._replace(names=tuple(f"{IMPORTED}{n}" for n in of_class.names))
        for label, of_class in stored.items()
    }
    folds = head.folds if isinstance(head.folds, CrossValidation) else None
    if folds is not None and not all(isinstance(label, str) for label in head.labels):
        empty = CrossValidation(Head(head.method, head.seed, head.dtype))
        renamed = empty.with_classes(folds, {str(label): label for label in head.labels})
        renamed.derived.put("calibration", folds.calibration)
        folds = renamed
    is_flat, classes = document.get("flat") is True, list(text_of.values())
    return ModelBasis(head.method, head.seed, head.width, states, named, folds, is_flat, tags), classes


def import_folder(project: "Project", split: Split, progress: Report) -> list[str]:
    """Add every file of a folder per class; those that were added before an interruption are recognised.

    Returns sentences about the folder: how it was read, and unreadable files.
    """
    inputs, group, sentences = split.inputs, f"import {split.origin}", list(split.omissions)
    if split.modality != project.modality.name or not isinstance(inputs, FileInputs):
        raise ParameterError(
            f"{split.origin} holds {split.kind.plural}, and {project.backbone.record.name} reads "
            f"{project.modality.plural}; choose another backbone with --backbone."
        )
    project.store.state({IMPORT: UNFINISHED})

    def add(i: int, label: str) -> None:
        raw, name = inputs.raw(i), Path(inputs.names[i]).name
        project.add(raw, project.embed(raw, name).result(), label, name, group).result()

    for label in dict.fromkeys(split.labels.tolist()):  # creates the classes in order: threads add the files
        if label not in project.history.labelled.classes:
            project.change({"do": "create", "label": label, "group": group}).result()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        futures = [pool.submit(add, i, label) for i, label in enumerate(split.labels.tolist())]
        for done, future in enumerate(futures, 1):
            try:
                future.result()
            except UnreadableInput as e:
                sentences.append(str(e))
            progress(done, len(futures))
    project.store.state({IMPORT: FINISHED})
    return sentences
