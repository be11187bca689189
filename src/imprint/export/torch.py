"""A safetensors file for torch. Writing it needs no torch."""

import json
from pathlib import Path

import numpy as np
from safetensors.numpy import save

from imprint.core.files.atomic import atomic_write
from imprint.export.head import MARK, Portable

SUFFIX = ".safetensors"


def write(path: Path, model: Portable) -> None:
    """`weight` (p, d), which is the state of `torch.nn.Linear` without a bias where a class has one proxy and the
    largest product wins; else also `owners` (p,) and the aggregator's own numbers. The description is metadata."""
    tensors = {name: np.ascontiguousarray(value) for name, value in model.tensors().items()}
    tensors["weight"] = tensors.pop("weights")
    if len(tensors["owners"]) == len(model.head):
        del tensors["owners"]
    with atomic_write(path) as f:
        f.write(save(tensors, {MARK: json.dumps(model.about)}))
