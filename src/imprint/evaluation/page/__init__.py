"""Pages about a model and about data: each one HTML file that needs nothing else."""

from pathlib import Path

from imprint.core.files.atomic import atomic_write
from imprint.core.types import Array
from imprint.datasets import Split
from imprint.evaluation.evaluation import Evaluation
from imprint.evaluation.inspection import Inspection
from imprint.evaluation.page.evaluated import evaluation_page, most_sure
from imprint.evaluation.page.inspected import inspection_page
from imprint.evaluation.page.memory import own_projection, reasons
from imprint.evaluation.rows import Rows
from imprint.imprinter import Imprinter

__all__ = ["write_evaluation", "write_inspection"]


def write_evaluation(
    path: Path, title: str, found: Evaluation, model: Imprinter, rows: Rows, P: Array, training: Split
) -> None:
    """Write the page of an evaluation; `training` is where the inputs that decided may be found."""
    classes = model.classes_
    answers = classes[P.argmax(axis=1)]
    because = reasons(model, rows, most_sure(rows.y, answers, P.max(axis=1)), answers, training)
    text = evaluation_page(title, found, rows, P, classes, own_projection(model, rows), because)
    with atomic_write(path) as f:
        f.write(text.encode())


def write_inspection(path: Path, title: str, found: Inspection, rows: Rows) -> None:
    """Write the page of an inspection."""
    with atomic_write(path) as f:
        f.write(inspection_page(title, found, rows).encode())
