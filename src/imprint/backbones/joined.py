"""Several networks side by side: `efficientnet_lite0+tinynet`."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from imprint.backbones.backbone import Backbone
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
        self.record = joined_record([part.record for part in parts])
        self.width = self.record.width
        self.modality = self.record.modality
        self.blocks = self.record.blocks
        self.fingerprint = joined_fingerprint([part.fingerprint for part in parts])
        on_gpu = [part.device for part in parts if part.device != "cpu"]
        self.device = on_gpu[0] if on_gpu else "cpu"

    def prepare(self, item: Any) -> tuple[Any, ...]:
        """One input, as each network takes it."""
        return tuple(part.prepare(item) for part in self.parts)

    def embed(self, batch: Array | Sequence[Any]) -> Array:
        """Prepared items as embeddings, float32 (n, width)."""
        columns = []
        for i, part in enumerate(self.parts):
            items = [item[i] for item in batch]
            is_array = bool(items) and isinstance(items[0], np.ndarray)
            columns.append(part.embed(np.stack(items) if is_array else items))
        return np.concatenate(columns, axis=1)

    def _forward(self, batch: Any) -> Array:
        return self.embed(batch)

    def count_truncated(self, texts: Sequence[str]) -> int:
        return max(part.count_truncated(texts) for part in self.parts)

    @property
    def embeds_names(self) -> bool:
        return all(part.embeds_names for part in self.parts)

    def embed_names(self, names: Sequence[str]) -> Array:
        rows = [part.embed_names(names) for part in self.parts]
        return np.concatenate(rows, axis=1)


def joined_fingerprint(fingerprints: Sequence[str]) -> str:
    """The fingerprint of several networks side by side, from their own."""
    return digest([VERSION, *fingerprints])
