"""Model files that are imported into a project: their classes, exemplars and cross-validation."""

from dataclasses import replace
from typing import Any

import numpy as np

from imprint.backbones import Backbone
from imprint.calibration import CrossValidation
from imprint.core.errors import FileError, ParameterError
from imprint.core.files import container
from imprint.head import Head
from imprint.imprinter import exemplars
from imprint.imprinter.exemplars import Exemplars
from imprint.persistence import head_from_parts
from imprint.serve.labels import clean_label
from imprint.serve.model import IMPORTED, ModelBasis, page_label
from imprint.tags import TagHead


def check_import(raw: bytes, name: str, backbone: Backbone) -> list[str]:
    """The classes of a model file; refused if it is not one, or was fitted with another backbone."""
    document, head, _ = _read(raw, name)
    stated = document["backbone"]
    if stated.get("fingerprint") != backbone.fingerprint:
        raise FileError(
            f"{name} was fitted with the backbone {stated.get('spec')}, and this page runs with "
            f"{backbone.record.name}; start another page with it: imprint serve {name}."
        )
    if head.imprinted.dtype != np.float32:
        raise FileError(f"{name} was fitted with double-precision embeddings, which this page does not compute.")
    labels = [page_label(label, head.tags) for label in head.owners.tolist()]
    for label in labels:
        try:
            usable = clean_label(label) == label
        except ParameterError:
            usable = False
        if not usable:
            raise FileError(
                f"{name} has a class {label!r}, which cannot name a folder, as a class of the page must; fit the model "
                f"again with another name for it, or remove it: imprint forget {name} {label!r}."
            )
    return labels


def imported_basis(raw: bytes) -> ModelBasis:
    """The classes of an imported model, with labels as texts."""
    document, decider, exemplars_of = _read(raw, "the imported model")
    head, tags = decider.imprinted, decider if isinstance(decider, TagHead) else None
    states = {page_label(label, decider.tags): state for label, state in zip(head.labels, head.states)}
    named = {
        page_label(label, decider.tags): of_class._replace(names=tuple(f"{IMPORTED}{n}" for n in of_class.names))
        for label, of_class in exemplars_of.items()
    }
    folds = head.folds if isinstance(head.folds, CrossValidation) else None
    if folds is not None and not all(isinstance(label, str) for label in head.labels):
        empty = CrossValidation.new(head.method, head.seed, head.dtype)
        renamed = empty.with_classes(folds, {str(label): label for label in head.labels})
        folds = replace(renamed, stored=folds.calibration)
    return ModelBasis(head.method, head.seed, head.width, states, named, folds, document.get("flat") is True, tags)


def _read(raw: bytes, name: str) -> tuple[dict[str, Any], Head | TagHead, dict[Any, Exemplars]]:
    document, arrays = container.parse(raw, name)
    if not isinstance(document.get("backbone"), dict):
        raise FileError(f"{name} is a classifier of embeddings, without a backbone; the page needs a model with one.")
    if "kept" in document:
        raise FileError(
            f"{name} keeps the pre-trained classes of its backbone, which the page does not show; use imprint predict, "
            f"or fit it without --keep-head."
        )
    head = head_from_parts(document, arrays, name)
    try:
        return document, head, exemplars.from_parts(head.imprinted, document["pictures"], arrays)
    except (KeyError, TypeError, ValueError):
        raise container.foreign(name) from None
