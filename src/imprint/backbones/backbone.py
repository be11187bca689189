"""Loaded backbones, which prepare single inputs and embed batches of them, and the
functions that adapters share.
"""

import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np

from imprint.backbones.places import BlockMap
from imprint.backbones.preprocess import Preprocess
from imprint.backbones.record import Record
from imprint.core.arrays import Array, digest
from imprint.core.errors import FileError, ParameterError, check_int, first_line

# part of what adapters share
from imprint.core.extras import import_extra as import_extra
from imprint.modalities import modality

SPEED_TEST_BATCH = 32  # inputs
# Characters of a text per token that the network reads: tokenisers take time and memory
# for the whole text before they drop tokens. English has 4 to 5 characters per token; a
# longer beginning makes a difference only to texts such as a page of white space.
CHARACTERS_PER_TOKEN = 256
DEFAULT_TOKENS = 512  # if the record does not state them: of most sentence encoders
TEMPLATES = (
    "{}",
    "a photo of a {}.",
    "a photo of the {}.",
    "a close-up photo of a {}.",
    "an image of {}.",
)
"""Prompts of a two-tower model: the embedding of a class name is the mean over these
sentences.
"""


class Backbone(ABC):
    """A frozen network with its `record`, whose `width` and `modality` it has too.

    `fingerprint` is a digest of everything that determines the embeddings. `prepare`
    may be called from many threads at once; `embed` from one at a time.
    """

    device = "cpu"
    # inputs per pass of the network, if `embed` divides a batch
    slice_rows: int | None = None
    # the networks of which it consists, if there are several
    parts: tuple["Backbone", ...] = ()
    # loads the backbone again, in any process; this is what is pickled
    reload: Callable[[], "Backbone"]

    def __init__(
        self, record: Record, weights: str, version: int, precision: str = "float32"
    ):
        self.record, self.width, self.modality = record, record.width, record.modality
        self.blocks = record.blocks
        self.fingerprint = record.fingerprint(weights, version, precision)

    def __reduce__(self) -> tuple[Any, tuple[()]]:
        return self.reload, ()

    def prepare(self, item: Any) -> Any:
        """One input, in the form that `embed` takes in a batch."""
        return modality(self.modality).convert(item)

    def count_truncated(self, texts: Sequence[str]) -> int:
        """Number of texts that are longer than the network reads."""
        return 0

    def cut(self, texts: Sequence[str]) -> list[str]:
        """The beginnings of texts, so long that the network reads no more than them."""
        limit = CHARACTERS_PER_TOKEN * (self.record.tokens or DEFAULT_TOKENS)
        return [text[:limit] for text in texts]

    @abstractmethod
    def _forward(self, batch: Any) -> Array: ...

    def embed(self, batch: Array | Sequence[Any]) -> Array:
        """Stacked prepared items (or a list of texts) as embeddings, float32 (n,
        width).
        """
        if not len(batch):
            return np.empty((0, self.width), np.float32)
        if modality(self.modality).typed:
            batch = self.cut(list(batch))
        out = np.ascontiguousarray(
            self._forward(batch).reshape(len(batch), -1), np.float32
        )
        if out.shape[1] != self.width:
            where = (
                f"layer {self.record.layer!r} of {self.record.name}"
                if self.record.layer
                else self.record.name
            )
            raise ParameterError(
                f"The {where} gives {out.shape[1]} numbers; its record says width"
                f" {self.width}."
            )
        return out

    def maps(self, prepared: Any) -> list[BlockMap | None]:
        """The map that each block of an embedding pools, for one prepared image; None
        for a block without places.

        A backbone without blocks has one. Backbones that cannot tell return None for
        each.
        """
        return [None] * max(1, len(self.blocks))

    @property
    def embeds_names(self) -> bool:
        """Whether `embed_names` works: for networks of texts, and for two-tower models
        such as CLIP.
        """
        return modality(self.modality).typed

    def embed_names(self, names: Sequence[str]) -> Array:
        """Embeddings of class names, by a network of texts or by the text tower of a
        two-tower model.  # (n, d)
        """
        if not self.embeds_names:
            rule = "use a network of texts, or a two-tower model such as open_clip:NAME"
            raise ParameterError(
                f"{self.record.name} cannot embed class names; {rule}."
            )
        beginnings = self.cut(names)
        return np.stack([self._embed_name(name) for name in beginnings])

    def _embed_name(self, name: str) -> Array:
        return self.embed([self.prepare(name)])[0]


class ImageBackbone(Backbone):
    """A backbone of images."""

    @property
    def preprocess(self) -> Preprocess:
        """How images become the input of the network."""
        if self.record.preprocess is None:
            raise ParameterError(
                f"The record of {self.record.name} has no preprocess; an image needs"
                " one."
            )
        return self.record.preprocess

    def prepare(self, item: Array) -> Array:
        """One image, uint8 (H, W, 3) or (H, W), brought to the network's size,
        uint8.
        """
        return self.preprocess.image(item)


class TorchBackbone(ImageBackbone):
    """A module on a device; single precision on CPU, automatic mixed precision on CUDA.

    The `towers` of a two-tower model such as CLIP are two functions that embed a batch
    of images and a list of texts in one space. Such a model can also embed the names
    of classes.
    """

    def __init__(
        self,
        record: Record,
        module: Any,
        weights: str,
        version: int,
        device: str,
        threads: int | None,
        *towers: Any,
    ):
        super().__init__(record, weights, version, precision(device))
        torch = torch_module()
        self.device, self._mixed = device, device != "cpu"
        layout = torch.channels_last if self._mixed else torch.contiguous_format
        self._module = (
            module.eval().requires_grad_(False).to(device=device, memory_format=layout)
        )
        self._embed_images, self._embed_texts = towers or (self._module, None)
        if record.blocks:
            from imprint.backbones.torch_blocks import Tapped

            self._embed_images = Tapped(
                record.name, self._module, record.blocks, self._embed_images
            )
        if threads is not None and not self._mixed:
            torch.set_num_threads(thread_count(threads))

    def _forward(self, batch: Array) -> Array:
        torch = torch_module()
        images = torch.from_numpy(np.require(batch, requirements=["C", "W"])).to(
            self.device
        )
        with (
            torch.inference_mode(),
            torch.autocast(self.device.split(":")[0], enabled=self._mixed),
        ):
            return (
                self._embed_images(self.preprocess.arrange(images))
                .float()
                .cpu()
                .numpy()
            )

    @property
    def embeds_names(self) -> bool:
        return self._embed_texts is not None

    def _embed_name(self, name: str) -> Array:
        """The mean of the unit embeddings of a name in a few sentences.  # (width,)"""
        torch = torch_module()
        with torch.inference_mode():
            rows = self._embed_texts(
                [template.format(name) for template in TEMPLATES]
            ).float()
            return np.asarray(torch.nn.functional.normalize(rows, dim=-1).cpu()).mean(
                axis=0
            )


@contextmanager
def creating(spec: str, device: str, offline: str) -> Iterator[None]:
    """Report why another library cannot create a model; `offline` says what to do
    without a network.
    """
    check_device(spec, device)
    try:
        yield
    except (OSError, RuntimeError, ValueError) as e:
        raise FileError(
            f"{spec} could not be created ({first_line(e)}): without a network,"
            f" {offline}."
        ) from None


def thread_count(threads: int | None) -> int:
    """The number of threads: `threads`, by default all cores that this process may
    use.
    """
    if threads is None:
        from imprint.kernels.cpu import available_cpus  # imports threadpoolctl

        return available_cpus()
    return check_int("load", "threads", threads)


def check_cpu(spec: str, device: str) -> None:
    """Refuse a GPU, for adapters that run on CPU only."""
    if device != "cpu":
        raise ParameterError(
            f"load({spec!r}, device={device!r}): {spec} runs on 'cpu' only."
        )


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
        raise ParameterError(
            f"load({name!r}, device={device!r}): device must be 'cpu', 'cuda' or"
            " 'cuda:N'."
        )
    if device != "cpu" and int(match[1] or 0) >= torch_module().cuda.device_count():
        raise ParameterError(
            f"load({name!r}, device={device!r}): torch does not find this device."
        )


def state_digest(module: Any) -> str:
    """One digest of all parameters and buffers, by name."""
    state = sorted(module.state_dict().items())
    arrays = ((key, value.detach().cpu().contiguous().numpy()) for key, value in state)
    return digest(part for pair in arrays for part in pair)


def inputs_per_second(backbone: Backbone, seconds: float = 1.0) -> float:
    """The speed on this machine, measured on artificial inputs (see `Modality.sample`)
    for about `seconds`.
    """
    items = modality(backbone.modality).sample(SPEED_TEST_BATCH)
    times = [0.0]
    with ThreadPoolExecutor(thread_count(None)) as pool:
        # the first batch is a warm-up and does not count
        while len(times) < 3 or times[-1] - times[1] < seconds:
            prepared = list(pool.map(backbone.prepare, items))
            backbone.embed(
                np.stack(prepared) if isinstance(prepared[0], np.ndarray) else prepared
            )
            times.append(time.perf_counter())
    return SPEED_TEST_BATCH * (len(times) - 2) / (times[-1] - times[1])
