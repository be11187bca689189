"""What can be taken away: the model file, the ONNX graph, and the pictures as a folder per class."""

import csv
import io
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from imprint.calibration import CrossValidation
from imprint.core.errors import NotFittedError
from imprint.evaluation import evaluation
from imprint.evaluation.labelled_rows import LabelledRows
from imprint.evaluation.page import evaluation_page
from imprint.evaluation.projection import project
from imprint.head import Head
from imprint.imprinter import Imprinter
from imprint.modalities.image import read_picture
from imprint.serve.classroom import Classroom

STAMP = (2000, 1, 1, 0, 0, 0)  # of files in the archive, so that the same lesson gives the same bytes


def taken(classroom: Classroom) -> Imprinter:
    """The newest model, as one that gives the page's own answers anywhere."""
    judgement, model = classroom.judged(), classroom.model()
    head = model.learnt.head
    if head is None:
        raise NotFittedError("There is no model to take away yet: teach a class first.")
    items = model.history.taught.items
    shelves = {
        label: shelf._replace(names=tuple(_place(items, name) for name in shelf.names))
        for label, shelf in model.learnt.shelves.items()
    }
    folds = judgement.folds if judgement.calibration is not None else None
    return Imprinter.of_head(classroom.spec, classroom.backbone, _with_folds(head, folds), shelves)


def _with_folds(head: Head, folds: CrossValidation | None) -> Head:
    """A head whose own probabilities are the calibrated ones."""
    return replace(head, folds=folds)


def model_file(classroom: Classroom) -> bytes:
    """The model as `imprint fit` writes it."""
    return _written(taken(classroom), "model.imprint", "model")


def onnx_file(classroom: Classroom) -> bytes:
    """The model as one ONNX graph, from pictures to probabilities where the network allows it."""
    return _written(taken(classroom), "model.onnx", "onnx")


def _written(model: Imprinter, name: str, kind: str) -> bytes:
    from imprint.export import export

    with tempfile.TemporaryDirectory(prefix="imprint-") as folder:
        place = Path(folder) / name
        if kind == "onnx":
            export(model, place, "onnx", head_only=model.backbone.record.adapter not in ("onnx", "raw"))
        else:
            model.save(place)
        return place.read_bytes()


def evaluation_file(classroom: Classroom) -> bytes:
    """The page of `imprint evaluate` about what was taught, each item decided by a model that had not seen it."""
    judgement = classroom.judged()
    answers, calibration = judgement.answers, judgement.calibration
    if answers is None or calibration is None:
        raise NotFittedError("There is nothing to evaluate yet: teach two classes, with two items each.")
    kept = np.flatnonzero(answers.assessed)
    items = [judgement.items[n] for n in kept]
    X, y = np.stack([classroom.rows[i.digest] for i in items]), answers.classes[answers.own[kept]]
    P, paths = calibration.probabilities(answers.shares[kept]), [f"{i.label}/{i.file}" for i in items]

    def content(n: int) -> Any:
        return items[n].text if items[n].text is not None else read_picture(classroom.content(items[n]))

    rows = LabelledRows(X, y, paths, (), content, classroom.modality)
    found = evaluation(P, answers.classes, y, paths)
    return evaluation_page(
        "What was taught", found, rows, P, answers.classes, project(X, answers.own[kept]), {}
    ).encode()


def archive(classroom: Classroom) -> Iterator[bytes]:
    """A zip file, made while it is sent: a folder per class, or for texts one table."""
    out = _Passing()
    with zipfile.ZipFile(out, "w") as z:
        if classroom.modality == "text":
            z.writestr(zipfile.ZipInfo("texts.csv", STAMP), _table(classroom))
        else:
            for label, items in classroom.history.taught.by_class().items():
                for item in sorted(items, key=lambda i: i.file):
                    z.writestr(zipfile.ZipInfo(f"{label}/{item.file}", STAMP), classroom.content(item))
                    yield out.taken()
    yield out.taken()


def _table(classroom: Classroom) -> str:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["text", "label"])
    for label, items in classroom.history.taught.by_class().items():
        writer.writerows([item.text, label] for item in sorted(items, key=lambda i: i.file))
    return text.getvalue()


def _place(items: dict[int, Any], name: str) -> str:
    item = items.get(int(name)) if name.isdigit() else None
    return f"{item.label}/{item.file}" if item else name


class _Passing(io.RawIOBase):
    """A file that cannot be sought in; what is written waits to be taken."""

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
        """What was written since it was last asked for."""
        raw, self._parts = b"".join(self._parts), []
        return raw
