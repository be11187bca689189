"""The page of `imprint suggest`: what to label next, in order."""

from pathlib import Path

from imprint.active import Suggestions
from imprint.core.files.atomic import atomic_write
from imprint.core.printable import printable
from imprint.datasets import Split
from imprint.evaluation.page.document import document
from imprint.evaluation.page.items import MAX_CONTENTS, content, shortened

SCRIPTS = ("dom", "numbers", "cards", "suggest")


def write_suggestions(path: Path, title: str, pool: Split, suggestions: Suggestions) -> None:
    """Write one HTML file with the suggested inputs, the most useful first."""
    items = []
    for place, (i, reason) in enumerate(zip(suggestions.tolist(), suggestions.reasons)):
        item = {"name": shortened(pool.names[i]), "reason": printable(reason, 120)}
        items.append({**item, **(content(pool.inputs[i], pool.modality) if place < MAX_CONTENTS else {})})
    unreadable = [{"path": printable(s.name), "reason": printable(s.reason)} for s in suggestions.unreadable]
    lead = f"{len(items):,} of {len(pool):,} inputs, the most useful first"
    with atomic_write(path) as f:
        f.write(document(title, lead, SCRIPTS, {"items": items, "unreadable": unreadable}).encode())
