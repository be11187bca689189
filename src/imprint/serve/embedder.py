"""One network for many askers: what waits is embedded in one batch."""

from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from imprint.backbones import Backbone
from imprint.backbones.backbone import thread_count
from imprint.core.errors import ImprintError, ParameterError, UnreadableInput
from imprint.core.types import Array
from imprint.modalities.image import read_picture
from imprint.serve.batches import Batches

BATCH = 64


class Embedder:
    """A backbone that any thread may ask.

    Inputs are decoded by a few threads; whenever the network is free it takes all that are ready, up to 64. So one
    input alone waits for nothing, and many at once cost what they cost in a batch.
    """

    def __init__(self, backbone: Backbone):
        self.backbone = backbone
        self.pool = ThreadPoolExecutor(thread_count(None), thread_name_prefix="decode")
        self._batches: Batches[tuple[Any, Future[Array]]] = Batches(self._embed, BATCH, name="embed")

    def ask(self, raw: bytes, name: str) -> "Future[Array]":
        """The embedding of a picture's bytes, or of a text in UTF-8, when it is there.  # (d,)"""
        found: Future[Array] = Future()
        self.pool.submit(self._prepare, raw, name, found)
        return found

    def close(self) -> None:
        """Finish what waits, then stop."""
        self.pool.shutdown()
        self._batches.close()

    def _prepare(self, raw: bytes, name: str, found: "Future[Array]") -> None:
        try:
            if self.backbone.modality == "text":
                self._batches.put((self.backbone.prepare(read_text(raw, name)), found))
            else:
                self._batches.put((self.backbone.prepare(read_picture(raw)), found))
        except UnreadableInput as e:
            found.set_exception(UnreadableInput(name, e.reason))
        except (ImprintError, ValueError, MemoryError) as e:
            found.set_exception(e)

    def _embed(self, batch: list[tuple[Any, "Future[Array]"]]) -> None:
        inputs = [prepared for prepared, _ in batch]
        try:
            rows = self.backbone.embed(np.stack(inputs) if isinstance(inputs[0], np.ndarray) else inputs)
        except (ImprintError, ValueError, RuntimeError, MemoryError) as e:
            for _, found in batch:
                found.set_exception(ParameterError(f"{self.backbone.record.name} failed on this input: {e}"))
            return
        for row, (_, found) in zip(rows, batch):
            found.set_result(row)


def read_text(raw: bytes, name: str) -> str:
    """A text in UTF-8."""
    try:
        text = raw.decode("utf-8").strip()
    except UnicodeDecodeError:
        raise UnreadableInput(name, "it is not UTF-8") from None
    if not text:
        raise UnreadableInput(name, "the text is empty")
    return text
