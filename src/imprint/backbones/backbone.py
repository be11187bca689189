"""A loaded backbone: it prepares single inputs and embeds batches of them; its speed."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np

from imprint.backbones.record import Record
from imprint.core.errors import FileError, ParameterError
from imprint.core.extras import missing
from imprint.core.types import Array
from imprint.modalities import modality

MEASURED_BATCH = 32


class Backbone(ABC):
    """A frozen network with its `record`, whose `width` and `modality` it has too.

    `fingerprint` is a digest of everything that determines the embeddings. `prepare` may be called from many threads at
    once; `embed` from one at a time.
    """

    device = "cpu"
    slice_rows: int | None = None  # inputs per pass of the network, if `embed` divides a batch
    reload: Callable[[], "Backbone"]  # loads the backbone again, in any process; this is what is pickled

    def __init__(self, record: Record, weights: str, version: int, precision: str = "float32"):
        self.record, self.width, self.modality = record, record.width, record.modality
        self.fingerprint = record.fingerprint(weights, version, precision)

    def __reduce__(self) -> tuple[Any, tuple[()]]:
        return self.reload, ()

    @abstractmethod
    def prepare(self, item: Any) -> Any:
        """One input, in the form that `embed` takes in a batch."""

    def count_truncated(self, texts: Sequence[str]) -> int:
        """Number of texts that are longer than the network reads."""
        return 0

    @abstractmethod
    def _forward(self, batch: Any) -> Array: ...

    def embed(self, batch: Array | Sequence[Any]) -> Array:
        """Stacked prepared items (or a list of texts) as embeddings, float32 (n, width)."""
        if not len(batch):
            return np.empty((0, self.width), np.float32)
        out = np.ascontiguousarray(self._forward(batch).reshape(len(batch), -1), np.float32)
        if out.shape[1] != self.width:
            where = f"layer {self.record.layer!r} of {self.record.name}" if self.record.layer else self.record.name
            raise ParameterError(f"The {where} gives {out.shape[1]} numbers; its record says width {self.width}.")
        return out

    @property
    def embeds_names(self) -> bool:
        """Whether `embed_names` works: for networks of texts, and for two-tower models such as CLIP."""
        return modality(self.modality).typed

    def embed_names(self, names: Sequence[str]) -> Array:
        """Embeddings of class names, by a network of texts or by the text tower of a two-tower model.  # (n, d)"""
        if not self.embeds_names:
            rule = "use a network of texts, or a two-tower model such as open_clip:NAME"
            raise ParameterError(f"{self.record.name} cannot embed class names; {rule}.")
        return np.concatenate([self.embed([self.prepare(name)]) for name in names])


class PictureBackbone(Backbone):
    """A backbone of pictures."""

    def __init__(self, record: Record, weights: str, version: int, precision: str = "float32"):
        super().__init__(record, weights, version, precision)
        if record.preprocess is None:
            raise ParameterError(f"The record of {record.name} has no preprocess; a picture needs one.")
        self.preprocess = record.preprocess

    def prepare(self, item: Array) -> Array:
        """One picture, uint8 (H, W, 3) or (H, W), brought to the network's size, uint8."""
        return self.preprocess.picture(item)


class TextBackbone(Backbone):
    """A backbone of texts."""

    def prepare(self, item: str) -> str:
        """The text itself."""
        return modality("text").convert(item)


def extra(module: str, name: str, spec: str) -> Any:
    """Import an optional module, or name the extra that installs it."""
    top = module.split(".")[0]
    try:
        return import_module(module)
    except ModuleNotFoundError as e:
        if (e.name or "").split(".")[0] != top:
            raise
        raise missing(name, f"{spec} needs {top.replace('_', '-')}") from None
    except RuntimeError as e:  # torchvision for another version of torch
        raise missing(name, f"{spec} needs compatible packages ({reason(e)})", "--force-reinstall") from None


@contextmanager
def creating(spec: str, offline: str) -> Iterator[None]:
    """Report why another library cannot create a model; `offline` says what to do without a network."""
    try:
        yield
    except (OSError, RuntimeError, ValueError) as e:
        raise FileError(f"{spec} could not be created ({reason(e)}): without a network, {offline}.") from None


def reason(error: BaseException) -> str:
    """The first line of the message of another library, for use within a sentence."""
    return str(error).strip().split("\n")[0].rstrip(".") or type(error).__name__


def thread_count(threads: int | None) -> int:
    """The given number, or all cores that this process may use."""
    if threads is None:
        from imprint.kernels.cpu import available_cpus  # imports threadpoolctl

        return available_cpus()
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise ParameterError(f"load(threads={threads!r}): threads must be None or int >= 1.")
    return threads


def only_cpu(spec: str, device: str) -> None:
    """Refuse a device that the adapter cannot use."""
    if device != "cpu":
        raise ParameterError(f"load({spec!r}, device={device!r}): {spec} runs on 'cpu' only.")


def inputs_per_second(backbone: Backbone, seconds: float = 1.0) -> float:
    """The speed on this machine, measured on artificial inputs (see `Modality.sample`) for about `seconds`."""
    items = modality(backbone.modality).sample(MEASURED_BATCH)
    times = [0.0]
    with ThreadPoolExecutor(thread_count(None)) as pool:
        while len(times) < 3 or times[-1] - times[1] < seconds:  # the first batch sets up and does not count
            prepared = list(pool.map(backbone.prepare, items))
            backbone.embed(np.stack(prepared) if isinstance(prepared[0], np.ndarray) else prepared)
            times.append(time.perf_counter())
    return MEASURED_BATCH * (len(times) - 2) / (times[-1] - times[1])
