"""The base of the torch adapters: a frozen module on a device that embeds pictures, and perhaps texts."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from imprint.backbones.backbone import PictureBackbone, thread_count
from imprint.backbones.record import Record
from imprint.core.digest import digest
from imprint.core.errors import ParameterError
from imprint.core.types import Array

TEMPLATES = ("{}", "a photo of a {}.", "a photo of the {}.", "a close-up photo of a {}.", "a picture of {}.")
"""The sentences whose mean embedding stands for the name of a class."""


class TorchBackbone(PictureBackbone):
    """A module on a device; single precision on CPU, automatic mixed precision on CUDA.

    The `towers` of a two-tower model such as CLIP are two functions that embed a batch of pictures and a list of texts
    in one space. Such a model can also embed the names of classes.
    """

    def __init__(
        self, record: Record, module: Any, weights: str, version: int, device: str, threads: int | None, *towers: Any
    ):
        check_device(record.name, device)
        self.device, self._mixed, torch = device, device != "cpu", torch_module()
        super().__init__(record, weights, version, precision(device))
        layout = torch.channels_last if self._mixed else torch.contiguous_format
        self._module = module.eval().requires_grad_(False).to(device=device, memory_format=layout)
        self._embed_pictures, self._embed_texts = towers or (self._module, None)
        if threads is not None and not self._mixed:
            torch.set_num_threads(thread_count(threads))

    def _forward(self, batch: Array) -> Array:
        torch = torch_module()
        with torch.inference_mode(), torch.autocast(self.device.split(":")[0], enabled=self._mixed):
            return self._embed_pictures(self._input(batch)).float().cpu().numpy()

    def _input(self, batch: Array) -> Any:
        """Like `Preprocess.arrange`, computed on the device."""
        torch, rule = torch_module(), self.preprocess
        x = torch.from_numpy(np.require(batch, requirements=["C", "W"])).to(self.device)
        x = x.permute(0, 3, 1, 2).to(torch.float32) / rule.divide
        if rule.mean is not None:
            x -= torch.tensor(rule.mean, device=self.device).view(1, -1, 1, 1)
        if rule.std is not None:
            x /= torch.tensor(rule.std, device=self.device).view(1, -1, 1, 1)
        return x if self._mixed else x.contiguous()

    @property
    def embeds_names(self) -> bool:
        return self._embed_texts is not None

    def embed_names(self, names: Sequence[str]) -> Array:
        """Each name as the mean of its unit embeddings in a few sentences.  # (n, width)"""
        if self._embed_texts is None:
            return super().embed_names(names)
        return np.stack([self._unit_texts([t.format(name) for t in TEMPLATES]).mean(axis=0) for name in names])

    def _unit_texts(self, texts: list[str]) -> Array:
        torch = torch_module()
        with torch.inference_mode():
            rows = self._embed_texts(texts).float()
            return np.asarray(torch.nn.functional.normalize(rows, dim=-1).cpu())


def precision(device: str) -> str:
    """The name of the arithmetic of a torch backbone in its fingerprint."""
    return "float32" if device == "cpu" else "mixed"


def torch_module() -> Any:
    """torch, imported when it is first needed."""
    import torch

    return torch


def check_device(name: str, device: str) -> None:
    """Refuse a device that torch does not have here."""
    match = re.fullmatch(r"cpu|cuda(?::(\d+))?", device)
    if not match:
        raise ParameterError(f"load({name!r}, device={device!r}): device must be 'cpu', 'cuda' or 'cuda:N'.")
    if device != "cpu" and int(match[1] or 0) >= torch_module().cuda.device_count():
        raise ParameterError(f"load({name!r}, device={device!r}): torch does not find this device.")


def state_digest(module: Any) -> str:
    """One digest of all parameters and buffers, by name."""
    state = sorted(module.state_dict().items())
    arrays = ((key, value.detach().cpu().contiguous().numpy()) for key, value in state)
    return digest(part for pair in arrays for part in pair)
