"""How often the response of a series to a kernel exceeds a threshold, for the 84
kernels of MiniRocket (Dempster, Schmidt and Webb, KDD 2021) at several dilations.

A kernel has nine weights: three are 2, the others -1. Its response to a series is
therefore 3 times the sum of three samples, minus the sum of nine, and all kernels of a
dilation share these two parts.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from imprint.core.arrays import Array
from imprint.kernels import cpu

TAPS = 9  # weights of one kernel
MIN_SAMPLES = TAPS  # a kernel of dilation 1 fits into a series of this length
RAISED: Array = np.array(list(combinations(range(TAPS), 3)), dtype=np.int64)
"""Which three weights of each kernel are 2.  # (84, 3)"""
KERNELS = len(RAISED)
CHUNK_SAMPLES = 1 << 18  # of the series that one task of the reference takes together


def exceedances(
    series: Array,
    dilations: Sequence[int],
    mixtures: Array,
    thresholds: Array,
    *,
    parallel: bool = True,
) -> Array:
    """The share of samples at which a kernel's response exceeds a threshold.

    Parameters
    ----------
    series : array (n, channels, length) of float32
        At least `MIN_SAMPLES` long.
    dilations : sequence of int
        The distances between neighbouring weights, J of them. Samples beyond the ends
        of a series are zero.
    mixtures : array (J, M, channels) of float32
        Weights of the channels. Kernel k sees the mixture `k % M` of them.
    thresholds : array (J, 84, B) of float32
        For each kernel at each dilation.
    parallel : bool
        Whether to use all cores.

    Returns
    -------
    array (n, J * 84 * B) of float32
        Every second kernel counts only the samples at which all of its weights lie
        within the series, if there are any.
    """
    n, _, length = series.shape
    thresholds_per_dilation = thresholds.shape[1] * thresholds.shape[2]
    out = np.empty((n, len(dilations), thresholds_per_dilation), np.float32)
    work = series.size * thresholds.size
    compiled = cpu.HAS_NUMBA and work >= cpu.MIN_COMPILED_WORK
    rows_per_task = max(1, CHUNK_SAMPLES // length)
    if compiled:
        rows_per_task = max(1, min(rows_per_task, -(-n // (4 * cpu.cores()))))

    def fill(first: int) -> None:
        rows = slice(first, first + rows_per_task)
        if compiled:
            from imprint.kernels.compiled.convolutions import count_exceedances

            steps = np.array(dilations, dtype=np.int64)
            count_exceedances(
                series[rows],
                steps,
                mixtures,
                thresholds,
                RAISED,
                out[rows],
            )
        else:
            _fill_with_numpy(series[rows], dilations, mixtures, thresholds, out[rows])

    cpu.on_all_cores(fill, range(0, n, rows_per_task), parallel=parallel)
    return out.reshape(n, -1)


def _fill_with_numpy(
    series: Array,
    dilations: Sequence[int],
    mixtures: Array,
    thresholds: Array,
    out: Array,
) -> None:
    """The reference of the compiled loops, which give the same bits."""
    length = series.shape[2]
    per_kernel = thresholds.shape[2]
    for j, dilation in enumerate(dilations):
        for kernel, response in responses(series, dilation, mixtures[j]):
            inside = counted_samples(j + kernel, dilation, length)
            counted = response[:, inside]
            for b in range(per_kernel):
                above = np.count_nonzero(counted > thresholds[j, kernel, b], axis=1)
                share = above.astype(np.float32) / np.float32(counted.shape[1])
                out[:, j, kernel * per_kernel + b] = share


def responses(
    series: Array,
    dilation: int,
    mixtures: Array,
) -> Iterator[tuple[int, Array]]:
    """The response to each kernel at one dilation.

    Parameters
    ----------
    series : array (n, channels, length) of float32
    dilation : int
    mixtures : array (M, channels) of float32

    Yields
    ------
    tuple of int and array (n, length)
        A kernel, and the response at every sample.
    """
    n, _, length = series.shape
    margin = TAPS // 2 * dilation
    for m, weights in enumerate(mixtures):
        padded = np.zeros((n, length + 2 * margin), np.float32)
        for channel, weight in enumerate(weights):
            padded[:, margin : margin + length] += weight * series[:, channel]
        starts = range(0, TAPS * dilation, dilation)
        taps = [padded[:, start : start + length] for start in starts]
        total = np.zeros((n, length), np.float32)
        for tap in taps:
            total += tap
        for kernel in range(m, KERNELS, len(mixtures)):
            first, second, third = RAISED[kernel]
            raised = taps[first] + taps[second] + taps[third]
            yield kernel, np.float32(3) * raised - total


def counted_samples(
    parity: int,
    dilation: int,
    length: int,
) -> slice:
    """The samples that count: all, or with an odd `parity` those at which the whole
    kernel lies within the series, if there are any.
    """
    margin = TAPS // 2 * dilation
    if parity % 2 == 0 or length <= 2 * margin:
        return slice(0, length)
    return slice(margin, length - margin)
