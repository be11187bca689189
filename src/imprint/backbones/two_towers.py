"""Networks of two towers, for pictures and for texts, that embed both in one space: CLIP, SigLIP and their kin."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from imprint.backbones.record import Record
from imprint.backbones.torch_backbone import TorchBackbone, torch_module
from imprint.core.types import Array

TEMPLATES = ("{}", "a photo of a {}.", "a photo of the {}.", "a close-up photo of a {}.", "a picture of {}.")
"""The sentences whose mean embedding stands for the name of a class."""
Tower = Callable[[Any, Any], Any]


class TwoTowerBackbone(TorchBackbone):
    """A backbone of pictures that embeds class names by its text tower.

    The first tower maps the model and a batch of pictures to embeddings, the second the model and a list of texts.
    """

    def __init__(self, record: Record, model: Any, towers: tuple[Tower, Tower], identity: str, *where: Any):
        embed_pictures, self._embed_texts = towers

        class PictureTower(torch_module().nn.Module):  # type: ignore[misc]
            """The model, called with pictures alone."""

            def __init__(self) -> None:
                super().__init__()
                self.model = model

            def forward(self, pictures: Any) -> Any:
                return embed_pictures(self.model, pictures)

        super().__init__(record, PictureTower(), identity, *where)

    @property
    def embeds_names(self) -> bool:
        return True

    def embed_names(self, names: Sequence[str]) -> Array:
        """Each name as the mean of its unit embeddings in a few sentences.  # (n, width)"""
        return np.stack([self._unit_texts([t.format(name) for t in TEMPLATES]).mean(axis=0) for name in names])

    def _unit_texts(self, texts: list[str]) -> Array:
        torch = torch_module()
        with torch.inference_mode():
            rows = self._embed_texts(self._module.model, texts).float()
            return np.asarray(torch.nn.functional.normalize(rows, dim=-1).cpu())
