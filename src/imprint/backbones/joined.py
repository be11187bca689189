"""Several networks side by side: `efficientnet_lite0+tinynet`."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from imprint.backbones.backbone import Backbone
from imprint.backbones.places import BlockMap
from imprint.backbones.record import joined_record
from imprint.core.arrays import Array, digest

VERSION = "joined 1"  # part of every fingerprint


class JoinedBackbone(Backbone):
    """Several networks that read the same inputs.

    An embedding is the embeddings of all of them, one after the other.
    """

    def __init__(self, parts: Sequence[Backbone]):
        # without super().__init__, which needs weights
        self.parts = tuple(parts)
        records = []
        fingerprints = []
        devices = []
        for part in parts:
            records.append(part.record)
            fingerprints.append(part.fingerprint)
            devices.append(part.device)
        self.record = joined_record(records)
        self.width = self.record.width
        self.modality = self.record.modality
        self.blocks = self.record.blocks
        self.fingerprint = joined_fingerprint(fingerprints)
        # a network on a GPU, if there is one, determines how a cluster plans
        self.device = max(devices, key=lambda device: device != "cpu")

    def prepare(self, item: Any) -> tuple[Any, ...]:
        """One input, as each network takes it."""
        return tuple(part.prepare(item) for part in self.parts)

    def embed(self, batch: Array | Sequence[Any]) -> Array:
        """Prepared items as embeddings, float32 (n, width)."""
        columns = []
        for i, part in enumerate(self.parts):
            items: Any = [item[i] for item in batch]
            if items and isinstance(items[0], np.ndarray):
                items = np.stack(items)
            rows = part.embed(items)
            columns.append(rows)
        return np.concatenate(columns, axis=1)

    def _forward(self, batch: Any) -> Array:
        return self.embed(batch)

    def maps(self, prepared: Any) -> list[BlockMap | None]:
        maps: list[BlockMap | None] = []
        for part, item in zip(self.parts, prepared):
            maps += part.maps(item)
        return maps

    def count_truncated(self, texts: Sequence[str]) -> int:
        counts = [part.count_truncated(texts) for part in self.parts]
        return max(counts)

    @property
    def embeds_names(self) -> bool:
        return all(part.embeds_names for part in self.parts)

    def embed_names(self, names: Sequence[str]) -> Array:
        columns = []
        for part in self.parts:
            rows = part.embed_names(names)
            columns.append(rows)
        return np.concatenate(columns, axis=1)


def joined_fingerprint(fingerprints: Sequence[str]) -> str:
    """The fingerprint of several networks side by side, from their own."""
    return digest([VERSION, *fingerprints])
