"""Files to download: the model, its ONNX graph, the pictures as a folder per class, and a report."""

import csv
import io
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from imprint.core.errors import FileError, NotFittedError
from imprint.evaluation import evaluation as evaluation_of
from imprint.evaluation.labelled_rows import LabelledRows
from imprint.evaluation.page import evaluation_page
from imprint.evaluation.projection import project as projected
from imprint.imprinter import Imprinter
from imprint.serve.evaluation import ModelEvaluation
from imprint.serve.labelled import LabelledItem
from imprint.serve.model import IMPORTED, item_number
from imprint.serve.project import Project

STAMP = (2000, 1, 1, 0, 0, 0)  # of files in the archive, so that the same project gives the same bytes
DAMAGED = "damaged.txt"


def exported(project: Project, evaluation: ModelEvaluation) -> Imprinter:
    """The model that was evaluated, with its calibration: it answers as the page does."""
    model = evaluation.model
    head = model.head if model else None
    if model is None or head is None:
        raise NotFittedError("There is no model to export yet: add examples of a class first.")
    items = model.history.labelled.items
    shelves = {
        label: shelf._replace(names=tuple(_path(items, name) for name in shelf.names))
        for label, shelf in model.exemplars.items()
    }
    folds = evaluation.folds if evaluation.calibration is not None else None
    imprinter = Imprinter.of_head(project.spec, project.backbone, replace(head, folds=folds), shelves)
    imprinter.embedder.tree = False if model.basis.flat else None
    return imprinter


def model_file(project: Project, evaluation: ModelEvaluation) -> bytes:
    """The model as `imprint fit` writes it."""
    with tempfile.TemporaryDirectory(prefix="imprint-") as folder:
        path = Path(folder) / "model.imprint"
        exported(project, evaluation).save(path)
        return path.read_bytes()


def onnx_file(project: Project, evaluation: ModelEvaluation) -> bytes:
    """The model as one ONNX graph, from pictures to probabilities where the network allows it."""
    from imprint.export import export

    model = exported(project, evaluation)
    with tempfile.TemporaryDirectory(prefix="imprint-") as folder:
        path = Path(folder) / "model.onnx"
        export(model, path, "onnx", head_only=model.backbone.record.adapter not in ("onnx", "raw"))
        return path.read_bytes()


def evaluation_file(project: Project, evaluation: ModelEvaluation) -> bytes:
    """The page of `imprint evaluate` about the labelled items, each predicted by a model fitted without it."""
    predictions, calibration = evaluation.predictions, evaluation.calibration
    if predictions is None or calibration is None or not evaluation.items:
        raise NotFittedError("There is nothing to evaluate yet: add two examples of each of two classes.")
    assessed = np.flatnonzero(predictions.assessed)
    items = [evaluation.items[n] for n in assessed]
    X, y = np.stack([project.rows[i.digest] for i in items]), predictions.classes[predictions.own[assessed]]
    P, paths = calibration.probabilities(predictions.shares[assessed]), [f"{i.label}/{i.file}" for i in items]

    def content(n: int) -> Any:
        return project.modality.read(project.content(items[n]))

    rows = LabelledRows(X, y, paths, (), content, project.modality.name)
    return evaluation_page(
        "Labelled examples",
        evaluation_of(P, predictions.classes, y, paths),
        rows,
        P,
        predictions.classes,
        projected(X, predictions.own[assessed]),
        {},
    ).encode()


def archive(project: Project) -> Iterator[bytes]:
    """A zip file, written while it is sent: a folder per class, or for texts one table.

    Pictures that are damaged are left out and named in a text file.
    """
    out, damaged = _Outgoing(), list[str]()
    by_class = project.history.labelled.by_class()
    with zipfile.ZipFile(out, "w") as z:
        if project.modality.typed:
            z.writestr(zipfile.ZipInfo("texts.csv", STAMP), _table(by_class))
        else:
            for label, items in by_class.items():
                for item in sorted((i for i in items if i.text is None), key=lambda i: i.file):
                    try:
                        content = project.content(item)
                    except FileError:
                        damaged.append(f"{label}/{item.file}")
                        continue
                    z.writestr(zipfile.ZipInfo(f"{label}/{item.file}", STAMP), content)
                    yield out.taken()
            described = {label: [i for i in items if i.text is not None] for label, items in by_class.items()}
            if any(described.values()):
                z.writestr(zipfile.ZipInfo("descriptions.csv", STAMP), _table(described))
        if damaged:
            z.writestr(zipfile.ZipInfo(DAMAGED, STAMP), "\n".join(["These pictures are damaged:", *damaged, ""]))
    yield out.taken()


def _table(by_class: dict[str, list[LabelledItem]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["text", "label"])
    for label, items in by_class.items():
        writer.writerows([item.text, label] for item in sorted(items, key=lambda i: i.file))
    return text.getvalue()


def _path(items: dict[int, LabelledItem], exemplar: str) -> str:
    item = items.get(item_number(exemplar) or 0)
    return f"{item.label}/{item.file}" if item else exemplar.removeprefix(IMPORTED)


class _Outgoing(io.RawIOBase):
    """A file without seeking; what is written waits until it is taken."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def writable(self) -> bool:
        return True

    def write(self, raw: Any) -> int:
        self._parts.append(bytes(raw))
        self._size += len(raw)
        return len(raw)

    def tell(self) -> int:
        return self._size

    def seekable(self) -> bool:
        return False

    def taken(self) -> bytes:
        """What was written since the last call."""
        raw, self._parts = b"".join(self._parts), []
        return raw
