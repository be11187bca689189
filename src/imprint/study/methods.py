"""Many methods as a table: the few components of each part once, and integer codes for every method."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from imprint.core.arrays import factorize
from imprint.core.component import PARTS, Component
from imprint.core.types import Array
from imprint.method import Method


@dataclass(frozen=True, eq=False)
class Methods:
    """A sequence of methods, stored by column. A `Method` is constructed only when it is read."""

    components: tuple[dict[str, Any], ...]
    """For each of the five parts, its distinct components by text."""
    codes: Array  # (n, 5) for each method, the position of each part in `components`

    @classmethod
    def single(cls, method: Method) -> "Methods":
        """A sequence of one method."""
        components = (getattr(method, part) for part in PARTS)
        return cls(tuple({str(c): c} for c in components), np.zeros((1, len(PARTS)), dtype=np.int32))

    @classmethod
    def union(cls, sequences: Sequence["Methods"]) -> "Methods":
        """The methods of several sequences, each once, in order of first appearance."""
        components = tuple(dict(chain(*(p.items() for p in part))) for part in zip(*(m.components for m in sequences)))
        code = [{text: i for i, text in enumerate(part)} for part in components]
        columns = [
            [np.array([code[j][text] for text in m.components[j]])[m.codes[:, j]] for j in range(len(PARTS))]
            for m in sequences
        ]
        codes = np.concatenate(columns, axis=1, dtype=np.int32)
        first, _ = factorize(np.ravel_multi_index(tuple(codes), [len(part) for part in components]))
        return cls(components, codes.T[first])

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, i: int) -> Method:
        parts = (list(part.values())[code] for part, code in zip(self.components, self.codes[i].tolist()))
        return Method(**dict(zip(PARTS, parts)))

    def __iter__(self) -> Iterator[Method]:
        return (Method(**dict(zip(PARTS, parts))) for parts in zip(*map(self.column, PARTS)))

    def column(self, part: str) -> list[Any]:
        """One part of every method."""
        j = PARTS.index(part)
        components = list(self.components[j].values())
        return [components[code] for code in self.codes[:, j].tolist()]

    def map_part(self, part: str, function: Callable[[Any], Any]) -> Array:
        """A function of one part of every method, evaluated once per distinct component.  # (n,)"""
        j = PARTS.index(part)
        return np.array([function(c) for c in self.components[j].values()])[self.codes[:, j]]

    def texts(self, convert: Callable[[str], Any] = str) -> Array:
        """The texts of all methods, as `str` or, with `str.encode`, as bytes.  # (n,)"""
        first, *others = (np.array([convert(text) for text in part], dtype=object) for part in self.components)
        column, *columns = self.codes.T
        return sum(((convert(" / ") + texts)[column] for texts, column in zip(others, columns)), first[column])

    def take(self, chosen: Array) -> "Methods":
        """The methods at some positions, or those where a boolean mask is true."""
        return replace(self, codes=self.codes[chosen])

    def with_part(self, part: str, component: Component, chosen: Array) -> "Methods":
        """The same methods; those chosen by a mask have this component as the given part."""
        j = PARTS.index(part)
        components, codes = {**self.components[j], str(component): component}, self.codes.copy()
        codes[chosen, j] = [*components].index(str(component))
        return Methods((*self.components[:j], components, *self.components[j + 1 :]), codes)
