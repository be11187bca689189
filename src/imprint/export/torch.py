"""A safetensors file: the state of `torch.nn.Linear` without a bias. Writing it needs no torch."""

import json
from pathlib import Path

import numpy as np
from safetensors.numpy import save

from imprint.aggregators.max import Max
from imprint.core.atomic import atomic_write
from imprint.core.errors import ParameterError
from imprint.export.head import MARK, Head

SUFFIX = ".safetensors"


def write(path: Path, head: Head) -> None:
    """`weight` (p, d), and `owners` (p,) where a class has several proxies; the description as metadata."""
    if not isinstance(head.aggregator, Max):
        raise ParameterError(f"export(to='torch'): {head.aggregator} is no linear layer; export to onnx or numpy.")
    tensors = {"weight": np.ascontiguousarray(head.weights)}
    if not head.linear:
        tensors["owners"] = np.ascontiguousarray(head.owners, np.int64)
    with atomic_write(path) as f:
        f.write(save(tensors, {MARK: json.dumps(head.about)}))
