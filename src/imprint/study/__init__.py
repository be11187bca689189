"""Studies: many experiments at once, on all cores or a cluster, never losing a finished
result.
"""

from imprint.study.grid import Grid
from imprint.study.plan import Plan, plan
from imprint.study.run import Progress, Summary, run
from imprint.study.study import Data, Held, Instance, Packs, Source, Study

__all__ = [
    "Data",
    "Grid",
    "Held",
    "Instance",
    "Packs",
    "Plan",
    "Progress",
    "Source",
    "Study",
    "Summary",
    "plan",
    "run",
]
