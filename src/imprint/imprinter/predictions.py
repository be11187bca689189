"""Predictions in JSON types: what `imprint predict --json`, the page and its API answer for each input."""

from typing import Any

import numpy as np

from imprint.core.label_sets import as_text
from imprint.head import Decider
from imprint.imprinter.items import Embedded


def predictions(
    head: Decider,
    rows: Embedded,
    *,
    top: int = 3,
    unknown: float | None = None,
    level: int | None = None,
    with_doubt: bool = False,
) -> list[dict[str, Any]]:
    """For each row: its `path`, `label`, `probability`, the p-value `known`, and the `top` classes.

    `known` is None if the model is not calibrated. `label` is None if `known` is below `unknown`. In a tree, `node` is
    then the deepest node that is still likely, and `level` asks for the nodes at that level. For tags, `labels` lists
    the predicted labels, the most probable first. `with_doubt` adds `doubt`, None if the aggregator has none.
    """
    Q, tree = rows.X.astype(head.imprinted.dtype, copy=False), head.tree()
    S = head.scores(Q)
    P, doubt = head.probabilities(S), head.doubt(Q) if with_doubt or head.calibrated else None
    known: list[float | None] = [None] * len(Q)
    nodes = None
    if head.calibrated or unknown is not None:
        p_values = head.calibration.p_values(S, doubt)
        known = p_values.tolist()
        if unknown is not None and tree.grouped_levels:
            nodes = [node and node._asdict() for node in tree.instead(P, p_values, unknown, level)]
    labels, P = (head.classes.tolist(), P) if level is None else tree.at(P, level)
    order, has_label = np.argsort(-P, axis=1, kind="stable"), head.predict(Q) if head.tags else None
    answers = []
    for i, (path, p_value) in enumerate(zip(rows.names, known)):
        best = [{"label": labels[c], "probability": float(P[i, c])} for c in order[i, :top].tolist()]
        rejected = unknown is not None and p_value is not None and p_value < unknown
        answer = {"path": path, "label": None if rejected else best[0]["label"]}
        answer |= {"probability": best[0]["probability"], "known": p_value, "top": best}
        if has_label is not None:
            columns = [] if rejected else [c for c in order[i].tolist() if has_label[i, c]]
            answer["labels"] = [{"label": labels[c], "probability": float(P[i, c])} for c in columns]
            answer["label"] = None if rejected else as_text(labels[c] for c in columns)
        if with_doubt:
            answer["doubt"] = None if doubt is None else float(doubt[i])
        if nodes is not None:
            answer["node"] = nodes[i]
        answers.append(answer)
    return answers
