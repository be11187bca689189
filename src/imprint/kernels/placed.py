"""Kernels on the device that is asked for: arrays go there, arrays come back."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from imprint.core.errors import MissingExtraError, ParameterError
from imprint.core.types import Array
from imprint.kernels import class_neighbours as plain_neighbours
from imprint.kernels import kmeans as plain_kmeans
from imprint.kernels import maxima as plain_maxima
from imprint.kernels import spans as plain_spans
from imprint.kernels.kmeans import KMeansResult, Problem
from imprint.kernels.spans import Base, Span, Watch

CPU = "cpu"


def check_device(device: str) -> None:
    """Refuse a device that is not here, in one sentence."""
    if device == CPU:
        return
    try:
        import torch
    except ImportError:
        raise MissingExtraError(f"device={device!r} needs torch: pip install 'imprint[torch]'.") from None
    if not torch.cuda.is_available():
        raise ParameterError(f"device={device!r}: torch finds no CUDA device on this machine; leave the device out.")


def kmeans_many(X: Array, problems: Sequence[Problem], device: str) -> list[KMeansResult]:
    """Several clusterings of the same rows; see `kernels.kmeans.kmeans_many`."""
    if device == CPU:
        return plain_kmeans.kmeans_many([X], problems)
    from imprint.kernels.tensor.kmeans import kmeans_many as solve

    found = solve([_tensor(X, device)], problems)
    return [
        KMeansResult(_array(f.centres), _array(f.labels), _array(f.mass), float(f.inertia), int(f.iterations))
        for f in found
    ]


def class_maxima(Q: Array, W: Array, starts: Array, device: str) -> Array:
    """Best scores of classes; see `kernels.maxima`."""
    if device == CPU:
        return plain_maxima.class_maxima(Q, W, starts)
    from imprint.kernels.tensor.maxima import class_maxima as find

    return _array(find(_tensor(Q, device), _tensor(W, device), _tensor(starts, device)))


def span_maxima(
    Q: Array, bases: Sequence[Base], spans: Sequence[Span], out: Array, device: str, watch: Watch | None = None
) -> None:
    """Best scores of proxies that share rows; see `kernels.spans`. On the CPU alone products can be watched."""
    if device == CPU:
        plain_spans.span_maxima(Q, bases, spans, out, watch)
        return
    parts = [span.rows(bases) for span in spans]
    starts = np.cumsum([0, *map(len, parts)])[:-1]
    out[:] = class_maxima(Q, np.concatenate(parts), starts, device).T


def class_neighbours(Q: Array, W: Array, starts: Array, m: int, metric: str, device: str) -> list[Array]:
    """Nearest proxies of classes; see `kernels.class_neighbours`."""
    if device == CPU:
        return plain_neighbours.class_neighbours(Q, W, starts, m, metric)
    from imprint.kernels.tensor.neighbours import nearest

    queries, proxies = _tensor(Q, device), _tensor(W, device)
    edges = [*starts.tolist(), len(W)]
    return [_array(nearest(queries, proxies[a:b], m, metric)[0].T.contiguous()) for a, b in pairwise(edges)]


def _tensor(array: Array, device: str) -> Any:
    import torch

    return torch.from_numpy(np.array(array, order="C")).to(device)


def _array(tensor: Any) -> Array:
    return np.asarray(tensor.cpu().numpy())
