"""The page of `imprint check`."""

from typing import Any

import numpy as np

from imprint.core.printable import printable
from imprint.evaluation.inspection import Inspection
from imprint.evaluation.page.document import document
from imprint.evaluation.page.flat import flat_map
from imprint.evaluation.page.shown import Shown
from imprint.evaluation.projection import project
from imprint.evaluation.rows import Rows

SCRIPTS = ("dom", "numbers", "cards", "map", "check")
MOST_MISLABELLED, MOST_GROUPS, MOST_COPIES, MOST_OUTLIERS = 120, 60, 6, 60


def inspection_page(title: str, found: Inspection, rows: Rows) -> str:
    """One HTML file."""
    row_of = {path: i for i, path in enumerate(rows.paths)}
    shown = Shown(rows)
    labels, groups = np.unique(rows.y, return_inverse=True)
    marked = np.zeros(len(rows.y), dtype=bool)
    marked[[row_of[s.path] for s in found.mislabelled]] = True
    suspects = []
    for s in found.mislabelled[:MOST_MISLABELLED]:
        suspects.append(
            {"item": shown.place(row_of[s.path]), "suggested": printable(s.suggested), "probability": s.probability}
        )
    copies = [[shown.place(row_of[p]) for p in group[:MOST_COPIES]] for group in found.duplicates[:MOST_GROUPS]]
    data: dict[str, Any] = {
        "classes": [printable(label, 60) for label in labels.tolist()],
        "counts": np.bincount(groups).tolist(),
        "rows": len(rows.y),
        "mislabelled": suspects,
        "duplicates": [{"items": c, "all": len(g)} for c, g in zip(copies, found.duplicates)],
        "outliers": [shown.place(row_of[p]) for p in found.outliers[:MOST_OUTLIERS]],
        "totals": [len(found.mislabelled), len(found.duplicates), len(found.outliers), len(found.unreadable)],
        "unreadable": [{k: printable(v) for k, v in one.items()} for one in found.unreadable],
        "items": shown.items,
        "map": flat_map(project(rows.X, rows.y), rows.X, groups, marked),
    }
    return document(title, f"{len(rows.y):,} rows of {len(labels):,} classes", SCRIPTS, data)
