"""Studies: many experiments at once, on all cores or a cluster, never losing a finished result."""

from imprint.study.grid import Grid
from imprint.study.plan import Plan, plan
from imprint.study.run import Progress, Summary, run
from imprint.study.source import Data, Held, Packs, Source
from imprint.study.study import Instance, Study

__all__ = ["Data", "Grid", "Held", "Instance", "Packs", "Plan", "Progress", "Source", "Study", "Summary", "plan", "run"]
