"""Proxies and states of a model file that are computed when they are needed.

The proxies of most calibrated models are rows of cross-validation, divided by their
lengths, and a file holds such rows once. A prediction reads them part by part. Only
more rows, merging or a report need the states of the classes.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np

from imprint.aggregators._base import ProxySource
from imprint.calibration.held import SHARED, STATE_ROWS, divided
from imprint.core.arrays import Array, Proxies
from imprint.core.errors import require
from imprint.core.files.mapped import release
from imprint.core.layout import Stack, to_stacks
from imprint.generators._base import PerClassGenerator
from imprint.method import ClassState, Method
from imprint.normalisers._base import Scaling


class DeferredStates(Sequence[ClassState]):
    """States of classes that are computed together, when one of them is needed."""

    def __init__(
        self,
        count: int,
        compute: Callable[[], tuple[ClassState, ...]],
    ) -> None:
        self._count = count
        self._compute: Callable[[], tuple[ClassState, ...]] | None = compute
        self._states: tuple[ClassState, ...] = ()

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> ClassState: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[ClassState]: ...
    def __getitem__(
        self,
        index: int | slice,
    ) -> ClassState | Sequence[ClassState]:
        return self._all()[index]

    def __iter__(self) -> Iterator[ClassState]:
        return iter(self._all())

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (self._all(),)

    def _all(self) -> tuple[ClassState, ...]:
        """The states. Two threads may compute them; all later callers get one
        result.
        """
        compute = self._compute
        if compute is not None:
            states = compute()
            if self._compute is not None:
                self._states = states
                self._compute = None
        return self._states


@dataclass(frozen=True, eq=False)
class DeferredProxies:
    """The proxies of a file, all of which are rows of cross-validation."""

    rows: Array  # (n, d) of all classes, in the order of the file
    index: Array  # (p,) which row each proxy is, in the order of the sorted classes
    lengths: Array  # (p, b) by which each block of the row is divided
    widths: tuple[int, ...]
    scaling: Scaling  # of the proxies
    sizes: Array  # (C,) the number of proxies of each sorted class
    shapes: Array  # (C, 3) class and shape of the proxies, in the order of the file
    blocks: tuple[int, ...]

    def take(self, chosen: Any) -> Array:
        """The weights of some proxies."""
        rows = self.rows[self.index[chosen]]
        release(self.rows)
        return self.scaling.apply(divided(rows, self.lengths[chosen], self.widths))

    def source(self, proxies: Callable[[], Proxies]) -> ProxySource:
        """What an aggregator needs of them."""
        labels = np.repeat(np.arange(len(self.sizes)), self.sizes)
        width = self.rows.shape[1]
        return ProxySource(
            labels, self.blocks, width, self.rows.dtype, self.take, proxies
        )

    def with_placeholders(self, arrays: dict[str, Array]) -> dict[str, Array]:
        """The arrays of the file with proxies that take no memory, in place of the
        references to rows.
        """
        rest = {
            name: array
            for name, array in arrays.items()
            if not name.startswith(f"{SHARED}/")
        }
        zero = self.rows.dtype.type(0)
        count = len(self.index) * self.rows.shape[1]
        rest[f"{STATE_ROWS}/values"] = np.broadcast_to(zero, (count,))
        rest[f"{STATE_ROWS}/shapes"] = self.shapes
        return rest


def deferred_proxies(
    method: Method,
    document: dict[str, Any],
    arrays: dict[str, Array],
    solution: str,
) -> DeferredProxies | None:
    """The proxies of a file, if a prediction can do without the states of the classes;
    `solution` is the prefix of what the aggregator prepared.

    Raises KeyError, TypeError or ValueError for arrays that do not fit together.
    """
    prepared = {
        name.removeprefix(solution): array
        for name, array in arrays.items()
        if name.startswith(solution)
    }
    is_rowwise = method.per_class and not method.norm_post.uses_reference
    if not is_rowwise or not isinstance(method.generator, PerClassGenerator):
        return None
    if not method.aggregator.is_complete(prepared):
        return None
    if f"{SHARED}/index/values" not in arrays or f"{STATE_ROWS}/values" in arrays:
        return None
    labels = document["labels"]
    width = document["width"]
    held = to_stacks(arrays, "held")["rows"]
    references = to_stacks(arrays, SHARED)
    index = references["index"]
    lengths = references["lengths" if method.blocks else "length"]
    widths = method.blocks or (width,)
    for stack in (held, index, lengths):
        # every class has all of them
        require(stack.classes.tolist() == list(range(len(labels))))
    require(held.values.dtype.name == document["dtype"])
    require(lengths.values.dtype == held.values.dtype)
    require(bool((held.shapes[:, 1] == width).all()))
    order = sorted(range(len(labels)), key=labels.__getitem__)
    row_of_proxy, length_of_proxy = _in_order(held, index, lengths, len(widths), order)
    rows = held.values.reshape(-1, width)
    if not _is_finite_quotient(rows, length_of_proxy):
        return None  # the usual way says what is wrong
    counts = index.shapes[:, 0]
    shapes = np.column_stack([index.classes, counts, np.full(len(counts), width)])
    return DeferredProxies(
        rows,
        row_of_proxy,
        length_of_proxy,
        widths,
        method.scaling("post"),
        counts[order],
        shapes.astype(np.int64),
        method.blocks,
    )


def _in_order(
    held: Stack,
    index: Stack,
    lengths: Stack,
    blocks: int,
    order: list[int],
) -> tuple[Array, Array]:
    """The row of each proxy and its lengths, in the order of the sorted classes.  #
    (p,), (p, b)
    """
    counts = held.shapes[:, 0]
    starts = np.cumsum(counts) - counts
    index_of = index.by_class()
    lengths_of = lengths.by_class()
    rows = []
    divisors = []
    for c in order:
        chosen = index_of[c]
        require(chosen.dtype.kind in "iu" and chosen.ndim == 1 and len(chosen) > 0)
        require(int(chosen.min()) >= 0 and int(chosen.max()) < counts[c])
        require(len(set(chosen.tolist())) == len(chosen))
        divisor = lengths_of[c].reshape(len(lengths_of[c]), -1)
        require(divisor.shape == (len(chosen), blocks))
        rows.append(starts[c] + chosen)
        divisors.append(divisor)
    return np.concatenate(rows), np.concatenate(divisors)


def _is_finite_quotient(rows: Array, lengths: Array) -> bool:
    """Whether no row overflows when it is divided."""
    smallest = float(lengths.min())
    # without a copy of all rows, as np.abs would make
    largest = max(float(rows.max()), -float(rows.min()))
    limit = float(np.finfo(rows.dtype).max)
    return smallest > 0 and largest < limit * min(smallest, 1.0)
