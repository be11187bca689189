"""Files to download: the model, its ONNX graph, the images in one folder per class,
and the evaluation.
"""

import csv
import io
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from imprint.backbones import Backbone
from imprint.core.errors import FileError, NotFittedError
from imprint.evaluation.labelled_rows import LabelledRows
from imprint.evaluation.page import evaluation_page
from imprint.imprinter import Imprinter
from imprint.serve.evaluation import ModelEvaluation, calibrated
from imprint.serve.labelled import LabelledItem
from imprint.serve.model import rows_of
from imprint.serve.project import Project
from imprint.serve.store import ProjectStore

# the time of all files in the archive, so that equal projects give equal bytes
STAMP = (2000, 1, 1, 0, 0, 0)


def image_input(backbone: Backbone) -> dict[str, Any] | None:
    """The preprocessing of images for the ONNX graph; None if the graph takes
    embeddings.
    """
    rule = backbone.record.preprocess
    return (
        rule.as_json()
        if rule is not None and backbone.record.adapter in ("onnx", "raw")
        else None
    )


def exported_model(project: Project, evaluation: ModelEvaluation) -> Imprinter:
    """The model that was evaluated, with its calibration: it answers as the page
    does.
    """
    model = calibrated(evaluation.model, evaluation)
    head = model.decider
    if head is None:
        raise NotFittedError(
            "There is no model to export yet: add examples of a class first."
        )
    # those of the page belong to its label sets
    exemplars = {} if head.tags else model.exemplars
    return Imprinter.of_head(project.spec, project.backbone, head, exemplars)


def model_file(project: Project, evaluation: ModelEvaluation, name: str) -> bytes:
    """`model.imprint` as `imprint fit` writes it, or `model.onnx`.

    The graph leads from images to probabilities if the backbone can be part of it.
    """
    model = exported_model(project, evaluation)
    with tempfile.TemporaryDirectory(prefix="imprint-") as folder:
        path = Path(folder) / name
        if name == "model.onnx":
            from imprint.export import export

            export(model, path, "onnx", head_only=image_input(model.backbone) is None)
        else:
            model.save(path)
        return path.read_bytes()


def evaluation_file(project: Project, evaluation: ModelEvaluation) -> bytes:
    """The page of `imprint evaluate` about the held-out items or, without any, about
    all items by cross-validation.
    """
    evaluated = evaluation.held_out or evaluation.cross_validated()
    if evaluation.model.tags is not None:
        raise NotFittedError(
            "The page has no report on tags; export the model, then: imprint evaluate"
            " MODEL DATA."
        )
    if evaluated is None:
        raise NotFittedError(
            "There is nothing to evaluate yet: add two examples of each of two classes."
        )
    items = evaluated.items
    if not items:
        raise NotFittedError(
            "The imported model came without its examples: hold out others to get a"
            " report on them."
        )

    def content(n: int) -> Any:
        return project.modality.read(project.content(items[n]))

    rows = LabelledRows(
        *rows_of(items, project.rows),
        [item.path for item in items],
        (),
        content,
        project.modality,
    )
    title = "Held-out examples" if evaluation.held_out else "Labelled examples"
    return evaluation_page(title, evaluated.result, rows).encode()


def archive(project: Project) -> Iterator[bytes]:
    """A zip file, written while it is sent: one folder per class, or for texts one
    table.

    With held-out items, there is one set of folders, or one table, for each of `train`
    and `test`. Damaged images are left out and listed in a text file. The archive is
    complete even if the project is closed meanwhile.
    """
    out, damaged = _ZipStream(), list[str]()
    by_class = project.history.labelled.by_class()
    items = [
        item
        for of_class in by_class.values()
        for item in sorted(of_class, key=lambda item: item.file)
    ]
    texts, files = (
        [item for item in items if item.text is not None],
        [item for item in items if item.text is None],
    )
    split = any(item.held_out for item in items)
    with (
        closing(ProjectStore(project.folder)) as store,
        zipfile.ZipFile(out, "w") as archive,
    ):

        def add(path: str, content: str | bytes) -> None:
            archive.writestr(zipfile.ZipInfo(path, STAMP), content)

        if project.modality.typed:
            add(
                "train.csv" if split else "texts.csv",
                _table([i for i in texts if not i.held_out]),
            )
            if split:
                add("test.csv", _table([i for i in texts if i.held_out]))
        elif texts:
            add("descriptions.csv", _table(texts))
        for item in files:
            part = "test/" if item.held_out else "train/"
            path = f"{part}{item.path}" if split else item.path
            try:
                content = store.file(item.digest)
                # earlier versions stored names without a suffix
                add(project.modality.file_name(path, content), content)
            except FileError:
                damaged.append(path)
            yield b"".join(out.parts)
            out.parts.clear()
        if damaged:
            add("damaged.txt", "\n".join(["These images are damaged:", *damaged, ""]))
    yield b"".join(out.parts)


def _table(items: list[LabelledItem]) -> str:
    text = io.StringIO()
    csv.writer(text).writerows(
        [["text", "label"], *([item.text, item.label] for item in items)]
    )
    return text.getvalue()


class _ZipStream(io.RawIOBase):
    """A file that can only be written, and that is emptied as it is sent."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []

    def write(self, raw: Any, /) -> int:
        self.parts.append(bytes(raw))
        return len(raw)
