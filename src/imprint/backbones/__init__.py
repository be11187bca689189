"""Backbones: `load` opens one by its name, such as `tinynet`, or by a prefix and a
file, such as `onnx:FILE`.
"""

import json
import os
from functools import partial
from typing import NamedTuple

import numpy as np

from imprint import modalities
from imprint.backbones.backbone import Backbone, precision, thread_count
from imprint.backbones.block import Block
from imprint.backbones.joined import JoinedBackbone, joined_fingerprint
from imprint.backbones.preprocess import Preprocess
from imprint.backbones.record import (
    JOIN,
    LAST,
    PREFIXES,
    RECORDS,
    Record,
    adapter,
    find,
    is_installed,
    last_layer,
    names,
    specs,
    weights_digest,
)
from imprint.core.arrays import Array
from imprint.core.errors import ParameterError

__all__ = [
    "PREFIXES",
    "Backbone",
    "Block",
    "ClassifierHead",
    "Preprocess",
    "Record",
    "default",
    "head",
    "is_installed",
    "last_layer",
    "load",
    "names",
    "record",
    "specs",
    "stated_fingerprint",
]


def default(modality: str) -> str:
    """The default backbone of a modality."""
    backbone = modalities.modality(modality).backbone
    if backbone is None:
        raise ParameterError(
            f"default({modality!r}): there is no default backbone; name one."
        )
    return backbone


class ClassifierHead(NamedTuple):
    """A linear layer over embeddings: `embeddings @ weights.T + bias` scores the
    classes.
    """

    weights: Array  # (classes, width) float32
    bias: Array  # (classes,) float32
    ids: tuple[str, ...]  # in WordNet
    names: tuple[str, ...]


def record(spec: str) -> Record:
    """The record of a backbone, without loading it."""
    if isinstance(source := find(spec), Record):
        return source
    raise ParameterError(
        f"record({spec!r}): its record comes with the model; use load({spec!r}).record."
    )


def stated_fingerprint(spec: str, device: str = "cpu") -> str | None:
    """The fingerprint that `load(spec, device)` would have, from the record and the
    file's digest alone.

    Nothing is imported, opened or downloaded. None if the model must be loaded for it:
    `torchvision:NAME`, `timm:NAME`, `sentence:NAME`, and missing weights whose digest
    is not recorded.
    """
    parts = specs(spec)
    if len(parts) > 1:
        fingerprints = [stated_fingerprint(part, device) for part in parts]
        stated = [one for one in fingerprints if one is not None]
        return joined_fingerprint(stated) if stated == fingerprints else None
    source = find(spec)
    if not isinstance(source, Record) or (weights := weights_digest(source)) is None:
        return None
    arithmetic = precision(device) if source.adapter == "torchvision" else "float32"
    return source.fingerprint(weights, adapter(source.adapter).VERSION, arithmetic)


def load(spec: str, device: str = "cpu", threads: int | None = None) -> Backbone:
    """Open a backbone by its name, or `onnx:FILE`, `timm:NAME` and so on; see
    `PREFIXES`.

    `NAME:last` is its last layer alone, and `NAME+NAME` several networks side by side.
    `threads` is the number of cores for one call of `embed`; None uses all that the
    process may use. A loaded backbone is pickled as these arguments, and loaded again
    when it is unpickled.

    >>> import numpy as np
    >>> pixels = load("raw")
    >>> image = pixels.prepare(np.zeros((60, 80, 3), np.uint8))
    >>> pixels.embed(image[None]).shape
    (1, 784)
    """
    source = find(spec)
    thread_count(threads)
    parts = specs(spec)
    if len(parts) > 1:
        backbone: Backbone = JoinedBackbone(
            [load(part, device, threads) for part in parts]
        )
    else:
        prefix = spec.partition(":")[0]
        module = adapter(source.adapter if isinstance(source, Record) else prefix)
        # a model that describes itself is asked for its last layer
        is_last = not isinstance(source, Record) and spec.endswith(LAST)
        options = {"last": True} if is_last else {}
        backbone = module.load(source, device, threads, **options)
    absolute = JOIN.join(map(_absolute, parts))
    backbone.reload = partial(load, absolute, device, threads)
    return backbone


def _absolute(spec: str) -> str:
    """The text of a backbone with an absolute path."""
    prefix, _, rest = spec.partition(":")
    if PREFIXES.get(prefix) != "FILE":
        return spec
    return f"{prefix}:{os.path.abspath(os.path.expanduser(rest))}"


def head(name: str) -> ClassifierHead:
    """The classifier that a backbone was pre-trained with, if it is part of the
    package.
    """
    from safetensors import safe_open

    path = record(name).head
    if path is None:
        raise ParameterError(f"head({name!r}): no pre-training head ships with it.")
    with safe_open(RECORDS.parent / path, "numpy") as f:
        ids, labels = (tuple(json.loads(f.metadata()[key])) for key in ("ids", "names"))
        return ClassifierHead(
            f.get_tensor("weight").astype(np.float32), f.get_tensor("bias"), ids, labels
        )
