"""Made-up packs of embeddings: Gaussian classes around random centres."""

import numpy as np


def write_pack(path, classes, rows, seed, width=6, distance=2.0):
    rng = np.random.default_rng(seed)
    centres, arrays = distance * rng.normal(size=(classes, width)), {}
    for name, n in (("train", rows), ("test", max(2, rows // 2))):
        y = np.repeat(np.arange(classes), n)
        arrays[name] = (centres[y] + rng.normal(size=(len(y), width))).astype(
            np.float32
        )
        arrays[f"{name}_labels"] = y
    np.savez(path, **arrays)
