"""How fast a backbone is on this machine."""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from imprint.backbones.backbone import Backbone, thread_count
from imprint.modalities import modality

BATCH = 32


def inputs_per_second(backbone: Backbone, seconds: float = 1.0) -> float:
    """Prepare and embed artificial inputs for about that many seconds: pictures of 500 x 375, texts of 3 to 16 words,
    sounds of 5 seconds.
    """
    items = modality(backbone.modality).sample(BATCH)
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
