"""Models of tags on the page: a class of the page is a label set, such as `joy + love`."""

from typing import TYPE_CHECKING, Any

import numpy as np

from imprint.core.label_sets import as_text, texts_of
from imprint.core.types import Array
from imprint.head import Head
from imprint.tags import TagHead
from imprint.tags.head import with_label_sets

if TYPE_CHECKING:
    from imprint.serve.model import ServedModel

AND = " + "


def page_label(label: Any, is_set: bool) -> str:
    """The name of a class on the page: a label, or the labels of a label set.

    >>> page_label("joy|love", True), page_label("joy|love", False)
    ('joy + love', 'joy|love')
    """
    return AND.join(texts_of(label)) if is_set else str(label)


def tag_head(sets: Head, imported: TagHead, unchanged: bool) -> TagHead:
    """The head of tags over the classes of the page; the imported one where nothing has changed since."""
    if unchanged:
        return imported
    names = [sorted(str(label).split(AND)) for label in sets.labels]
    labels = tuple(sorted({label for one in names for label in one}))
    return TagHead(with_label_sets(sets, list(map(as_text, names))), labels)


def tag_answer(model: "ServedModel", row: Array, path: str, top: int, unknown: float) -> dict[str, Any]:
    """What `imprint predict --json` prints for one embedding."""
    head = model.tags
    assert head is not None
    Q = row[None, :].astype(head.sets.dtype)
    S, doubt = head.scores(Q), head.doubt(Q)
    P, known = head.probabilities(S)[0], float(head.calibration.p_values(S, doubt)[0])
    guesses = [{"label": str(head.labels[c]), "probability": float(P[c])} for c in np.argsort(-P, kind="stable")]
    chosen = {str(head.labels[c]) for c in np.flatnonzero(head.predict(Q)[0])} if known >= unknown else set()
    labels = [guess for guess in guesses if guess["label"] in chosen]
    return {
        "path": path,
        "label": None if known < unknown else AND.join(str(guess["label"]) for guess in labels) or "no label",
        "labels": labels,
        "probability": guesses[0]["probability"],
        "known": known,
        "doubt": None if doubt is None else float(doubt[0]),
        "calibrated": True,
        "top": guesses[:top],
    }


def tag_figures(head: TagHead) -> dict[str, Any]:
    """What the page shows under Evaluate, from leave-one-out predictions."""
    calibration, rows = head.calibration, head.rows_per_class
    per_label = zip(map(str, head.labels), rows.tolist(), calibration.average_precision, calibration.f1)
    present = rows > 0
    return {
        "ready": True,
        "calibrated": True,
        "rows": round(float(head.proxies.mass.sum())),
        "accuracy": calibration.expected_accuracy,
        "interval": list(calibration.expected_interval),
        "tags": {
            "mean_average_precision": float(calibration.average_precision[present].mean()),
            "macro_f1": float(calibration.f1[present].mean()),
            "per_label": [
                {"label": label, "rows": round(n), "average_precision": float(precision), "f1": float(f1)}
                for label, n, precision, f1 in per_label
            ],
        },
        "advice": [],
    }
