"""What packages need that add components or studies: base classes, parameters, arrays,
errors and files.
"""

from imprint.aggregators._base import Aggregator
from imprint.core.arrays import Array, Proxies, State
from imprint.core.component import Component, param
from imprint.core.errors import count, reporting_damage, unknown
from imprint.core.files.atomic import atomic_write, home, make_folder, write_outputs
from imprint.core.graph import GraphBuilder
from imprint.datasets.numpy_files import load_pack, open_pack
from imprint.generators._base import Generator, PerClassGenerator
from imprint.kernels.cpu import one_thread
from imprint.kernels.rows import unit_rows
from imprint.modalities._base import Modality
from imprint.normalisers._base import Normaliser
from imprint.tasks import Task

__all__ = [
    "Aggregator",
    "Array",
    "Component",
    "Generator",
    "GraphBuilder",
    "Modality",
    "Normaliser",
    "PerClassGenerator",
    "Proxies",
    "State",
    "Task",
    "atomic_write",
    "count",
    "home",
    "load_pack",
    "make_folder",
    "one_thread",
    "open_pack",
    "param",
    "reporting_damage",
    "unit_rows",
    "unknown",
    "write_outputs",
]
