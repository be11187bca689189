"""Model files that are imported into a project: their classes, exemplars and cross-validation."""

import numpy as np

from imprint.backbones import Backbone
from imprint.calibration import CrossValidation
from imprint.core.errors import FileError, ParameterError
from imprint.core.files import container
from imprint.imprinter import exemplars
from imprint.persistence import head_from_parts
from imprint.serve.labels import clean_label
from imprint.serve.model import IMPORTED, ModelBasis, page_label
from imprint.tags import TagHead

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
    text_of = {label: page_label(label, decider.tags) for label in decider.owners.tolist()}
    for text in text_of.values():
        _check_class(text, name)
    states = {text_of[label]: state for label, state in zip(head.labels, head.states)}
    named = {
        text_of[label]: of_class._replace(names=tuple(f"{IMPORTED}{n}" for n in of_class.names))
        for label, of_class in stored.items()
    }
    folds = head.folds if isinstance(head.folds, CrossValidation) else None
    if folds is not None and not all(isinstance(label, str) for label in head.labels):
        empty = CrossValidation.new(head.method, head.seed, head.dtype)
        renamed = empty.with_classes(folds, {str(label): label for label in head.labels})
        renamed.derived.put("calibration", folds.calibration)
        folds = renamed
    flat = document.get("flat") is True
    basis = ModelBasis(head.method, head.seed, head.width, states, named, folds, flat, tags)
    return basis, list(text_of.values())


def _check_class(label: str, name: str) -> None:
    try:
        if clean_label(label) == label:
            return
    except ParameterError:
        pass
    raise FileError(
        f"{name} has a class {label!r}, which cannot name a folder, as a class of the page must; fit the model "
        f"again with another name for it, or remove it: imprint forget {name} {label!r}."
    )
