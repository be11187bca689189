"""What the model says about one picture or text, as `imprint predict --json` says it."""

from typing import Any

import numpy as np

from imprint.core.errors import NotFittedError
from imprint.core.types import Array
from imprint.imprinter import exemplars
from imprint.serve.classroom import Model
from imprint.serve.judge import Judgement

REASONS = 6


def answer(
    model: Model,
    judgement: Judgement,
    row: Array,
    path: str,
    *,
    top: int = 3,
    unknown: float = 0.0,
    why: bool = False,
) -> dict[str, Any]:
    """The most probable classes of one embedding; no label where it is known with less than `unknown`.

    The judgement may be of a model some changes ago; whether a query is known is left open where classes have come
    or gone since.
    """
    head = model.learnt.head
    if head is None:
        raise NotFittedError("There is nothing to answer from yet: teach a class first.")
    Q = row[None, :].astype(head.dtype)
    S, doubt, calibration = head.scores(Q), head.doubt(Q), judgement.calibration
    P = head.probabilities(S)
    p = (P if calibration is None else calibration.probabilities(P))[0]
    known = None
    if calibration is not None and judgement.classes == head.classes.tolist():
        known = calibration.p_values(S, doubt)
    labels = head.classes.tolist()
    best = [{"label": labels[c], "probability": float(p[c])} for c in np.argsort(-p, kind="stable")[:top].tolist()]
    sure = known is None or known[0] >= unknown
    found: dict[str, Any] = {
        "path": path,
        "label": best[0]["label"] if sure else None,
        "probability": best[0]["probability"],
        "known": None if known is None else float(known[0]),
        "doubt": None if doubt is None else float(doubt[0]),
        "top": best,
    }
    return found | ({"why": _reasons(model, row), "measure": head.method.aggregator.measure} if why else {})


def _reasons(model: Model, row: Array) -> list[dict[str, Any]]:
    """The items that decided, with their weight; an opened model's own pictures have a name and no number."""
    head, shelves = model.learnt
    assert head is not None
    items, found = model.history.taught.items, []
    for reason in exemplars.reasons(head, shelves, row, REASONS):
        number = int(reason.picture) if reason.picture is not None and reason.picture.isdigit() else None
        item = items.get(number) if number is not None else None
        name = item.name if item else reason.picture
        found.append({"id": item.id if item else None, "name": name, "label": reason.label, "value": reason.value})
    return found
