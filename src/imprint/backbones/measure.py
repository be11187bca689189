"""How fast a backbone is on this machine."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from imprint.backbones.backbone import Backbone, thread_count

BATCH = 32
SENTENCE = "where is the card that i ordered two weeks ago and why has nobody told me"  # 16 words


def inputs_per_second(backbone: Backbone, seconds: float = 1.0) -> float:
    """Prepare and embed made-up inputs for about so many seconds: pictures of 500 x 375, texts of 3 to 16 words,
    sounds of 5 seconds.
    """
    items = MADE_UP[backbone.modality]()
    with ThreadPoolExecutor(thread_count(None)) as pool:
        _embed(pool, backbone, items)  # what is set up on first use does not count
        done, start = 0, time.perf_counter()
        while (passed := time.perf_counter() - start) < seconds:
            _embed(pool, backbone, items)
            done += BATCH
    return done / passed


def _embed(pool: ThreadPoolExecutor, backbone: Backbone, items: Sequence[Any]) -> None:
    prepared = list(pool.map(backbone.prepare, items))
    backbone.embed(np.stack(prepared) if isinstance(prepared[0], np.ndarray) else prepared)


def _pictures() -> list[Any]:
    return [np.random.default_rng(0).integers(0, 256, (375, 500, 3), dtype=np.uint8)] * BATCH


def _texts() -> list[Any]:
    words = SENTENCE.split()
    return [" ".join(words[: 3 + i % (len(words) - 2)]) for i in range(BATCH)]


def _sounds() -> list[Any]:
    return [np.random.default_rng(0).normal(0, 0.1, 80_000).astype(np.float32)] * BATCH


MADE_UP: dict[str, Callable[[], list[Any]]] = {"image": _pictures, "text": _texts, "sound": _sounds}
