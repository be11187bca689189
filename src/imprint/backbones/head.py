"""The classifier a backbone was pre-trained with."""

import json
from pathlib import Path
from typing import NamedTuple

import numpy as np

from imprint.backbones.record import RECORDS, Record
from imprint.core.errors import ParameterError
from imprint.core.types import Array


class ClassifierHead(NamedTuple):
    """A linear layer over embeddings: `embeddings @ weights.T + bias` scores the classes."""

    weights: Array  # (classes, width) float32
    bias: Array  # (classes,) float32
    ids: tuple[str, ...]
    """WordNet ids."""
    names: tuple[str, ...]


def read_head(record: Record) -> ClassifierHead:
    """The head that ships with a backbone."""
    from safetensors import safe_open

    if record.head is None:
        raise ParameterError(f"head({record.name!r}): no pre-training head ships with it.")
    path = Path(RECORDS.parent, record.head)
    with safe_open(path, "numpy") as f:
        meta = f.metadata()
        ids, labels = (tuple(json.loads(meta[key])) for key in ("ids", "names"))
        return ClassifierHead(f.get_tensor("weight").astype(np.float32), f.get_tensor("bias"), ids, labels)
