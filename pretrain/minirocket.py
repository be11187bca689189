"""The thresholds of the frozen MiniRocket, from artificial series.

    python pretrain/minirocket.py OUT.safetensors

Prints the SHA-256 for the record. The artificial series are noise, random walks, and
sines with noise, each of mean 0 and variance 1.
"""

import hashlib
import sys
from pathlib import Path

import numpy as np
from safetensors.numpy import save

from imprint.backbones.adapters.minirocket import SHAPES, dilations, prepared
from imprint.kernels.convolutions import KERNELS, exceedances, responses

# Measured in cross-validation on the training rows of eleven public sets: from 8 to 32
# dilations and from 3 to 6 thresholds, whole sets and five rows per class differ by
# less than 0.6 points.
DILATIONS, THRESHOLDS = 12, 3
SERIES, LENGTH = 600, 256
THRESHOLD_SERIES = 60  # whose responses determine the thresholds
GOLDEN = (1 + 5**0.5) / 2
ALONE = np.ones((1, 1), np.float32)  # a single channel


def artificial(seed: int) -> np.ndarray:
    """Series in equal parts of three kinds.  # (SERIES, 1, LENGTH)"""
    # the legacy generator, whose numbers never change
    rng = np.random.RandomState(seed)
    time = np.linspace(0, 1, LENGTH)
    series = []
    for i in range(SERIES):
        noise = rng.standard_normal(LENGTH)
        if i % 3 == 0:
            series.append(noise)
        elif i % 3 == 1:
            series.append(np.cumsum(noise))
        else:
            # from one period to periods of six samples
            periods = np.exp(rng.uniform(0, np.log(LENGTH / 6)))
            sine = np.sin(2 * np.pi * (periods * time + rng.uniform()))
            series.append(sine + rng.uniform(0, 0.5) * noise)
    return np.array(series)[:, None]


def thresholds_of(series: np.ndarray) -> np.ndarray:
    """Quantiles of the responses, spread evenly by the golden ratio as in MiniRocket."""
    total = DILATIONS * KERNELS * THRESHOLDS
    shares = (np.arange(1, total + 1) * GOLDEN % 1).reshape(DILATIONS, KERNELS, -1)
    out = np.empty(shares.shape, np.float32)
    for j, dilation in enumerate(dilations(series.shape[2], DILATIONS)):
        for kernel, response in responses(series, dilation, ALONE):
            out[j, kernel] = np.quantile(response, shares[j, kernel])
    return out


def main(path: Path) -> None:
    """Write the weights."""
    weights = {}
    for seed, block in enumerate(SHAPES):
        items = [prepared(series) for series in artificial(seed)]
        series = np.stack([getattr(item, block) for item in items])
        chosen = series[:: SERIES // THRESHOLD_SERIES + 1]
        thresholds = thresholds_of(chosen)
        steps = dilations(series.shape[2], DILATIONS)
        alone = np.ones((DILATIONS, 1, 1), np.float32)
        shares = exceedances(series, steps, alone, thresholds).astype(np.float64)
        weights[f"{block}.thresholds"] = thresholds
        weights[f"{block}.mean"] = shares.mean(axis=0).astype(np.float32)
        # at least two samples of the artificial series
        scale = np.maximum(shares.std(axis=0), 2 / LENGTH)
        weights[f"{block}.scale"] = scale.astype(np.float32)
    content = save(weights)
    path.write_bytes(content)
    print(f"{len(content):,} bytes, SHA-256 {hashlib.sha256(content).hexdigest()}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
