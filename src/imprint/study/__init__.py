"""Studies: many experiments at once, on all cores or a cluster, never losing a finished
result.
"""

from imprint.study.collection import (
    CollectionReport,
    NamedStudy,
    RunOptions,
    StudyCollection,
    StudySelection,
    collection_of,
    collections,
)
from imprint.study.grid import Grid, method_from_text
from imprint.study.plan import Plan, plan
from imprint.study.run import Progress, Summary, run
from imprint.study.store import Store
from imprint.study.study import (
    Data,
    Held,
    Instance,
    Packs,
    Source,
    Study,
)

__all__ = [
    "CollectionReport",
    "Data",
    "Grid",
    "Held",
    "Instance",
    "NamedStudy",
    "Packs",
    "Plan",
    "Progress",
    "RunOptions",
    "Source",
    "Store",
    "Study",
    "StudyCollection",
    "StudySelection",
    "Summary",
    "collection_of",
    "collections",
    "method_from_text",
    "plan",
    "run",
]
