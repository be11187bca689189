"""The loops of `kernels.convolutions`."""

import numpy as np

from imprint.core.arrays import Array
from imprint.kernels.compiled import jit

# Functions of their own, because LLVM vectorises a loop over a few arrays only if it
# sees little else.


@jit
def _add(
    weight: float,
    samples: Array,
    out: Array,
) -> None:
    for t in range(len(out)):
        out[t] += weight * samples[t]


@jit
def _add_plain(samples: Array, out: Array) -> None:
    for t in range(len(out)):
        out[t] += samples[t]


@jit
def _respond(
    first: Array,
    second: Array,
    third: Array,
    total: Array,
    out: Array,
) -> None:
    for t in range(len(out)):
        out[t] = np.float32(3) * (first[t] + second[t] + third[t]) - total[t]


@jit
def _count_above(response: Array, threshold: float) -> np.int32:
    above = np.int32(0)
    for t in range(len(response)):
        above += np.int32(response[t] > threshold)
    return above


@jit
def count_exceedances(
    series: Array,
    dilations: Array,
    mixtures: Array,
    thresholds: Array,
    raised: Array,
    out: Array,
) -> None:
    """Fill `out`, (n, J, 84 B), with shares of samples.

    Sums are taken in the order of the reference, so that the results are equal.
    """
    n, channels, length = series.shape
    n_mixtures = mixtures.shape[1]
    n_kernels = thresholds.shape[1]
    per_kernel = thresholds.shape[2]
    padded = np.zeros(length + 8 * np.max(dilations), np.float32)
    total = np.empty(length, np.float32)
    response = np.empty(length, np.float32)
    for i in range(n):
        for j in range(len(dilations)):
            dilation = dilations[j]
            margin = 4 * dilation
            for m in range(n_mixtures):
                padded[: length + 2 * margin] = 0
                mixed = padded[margin : margin + length]
                for c in range(channels):
                    _add(mixtures[j, m, c], series[i, c], mixed)
                total[:] = 0
                for tap in range(9):
                    start = tap * dilation
                    _add_plain(padded[start : start + length], total)
                for k in range(m, n_kernels, n_mixtures):
                    first = raised[k, 0] * dilation
                    second = raised[k, 1] * dilation
                    third = raised[k, 2] * dilation
                    _respond(
                        padded[first : first + length],
                        padded[second : second + length],
                        padded[third : third + length],
                        total,
                        response,
                    )
                    counted = response
                    if (j + k) % 2 == 1 and length > 2 * margin:
                        counted = response[margin : length - margin]
                    for q in range(per_kernel):
                        above = _count_above(counted, thresholds[j, k, q])
                        share = np.float32(above) / np.float32(len(counted))
                        out[i, j, k * per_kernel + q] = share
