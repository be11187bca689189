"""NumPy arrays that tensors are compared with, kept on the tensor's device as long as they live."""

import weakref
from typing import Any

import torch
from torch import Tensor

from imprint.core.types import Array

_resident: dict[tuple[int, torch.device], tuple[weakref.ref[Any], Tensor]] = {}


def on_device_of(array: Array, x: Tensor) -> Tensor:
    """The array as a tensor where x lies. It is copied once: arrays of a model never change."""
    key = id(array), x.device
    known = _resident.get(key)
    if known is None or known[0]() is not array:
        gone = weakref.ref(array, lambda _: _resident.pop(key, None))
        known = _resident[key] = gone, torch.tensor(array, device=x.device)
    return known[1]
