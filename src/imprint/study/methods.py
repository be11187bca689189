"""Many methods as columns: a few components, and for each method the indices of its parts."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from imprint.core.arrays import factorize
from imprint.core.component import Component
from imprint.core.types import Array
from imprint.method import PARTS, Method


@dataclass(frozen=True, eq=False)
class Methods:
    """Many methods composed of few components. A `Method` is built when it is needed."""

    components: tuple[dict[str, Any], ...]  # the components of each part, by their texts
    places: Array  # (n, 5) for each method the indices of its parts in `components`

    @classmethod
    def of(cls, method: Method) -> "Methods":
        """One method."""
        return cls(
            tuple({str(c): c} for c in (getattr(method, part) for part in PARTS)),
            np.zeros((1, len(PARTS)), dtype=np.int32),
        )

    @classmethod
    def joined(cls, many: Sequence["Methods"]) -> "Methods":
        """All of them, each once, in the order in which they come."""
        components = tuple(dict(chain(*(own.items() for own in part))) for part in zip(*(m.components for m in many)))
        place = [{text: i for i, text in enumerate(part)} for part in components]
        rows = [
            [np.array([place[j][text] for text in m.components[j]])[m.places[:, j]] for j in range(len(PARTS))]
            for m in many
        ]
        every = np.concatenate(rows, axis=1, dtype=np.int32)
        first, _ = factorize(np.ravel_multi_index(tuple(every), [len(part) for part in components]))
        return cls(components, every.T[first])

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, i: int) -> Method:
        parts = (list(own.values())[place] for own, place in zip(self.components, self.places[i].tolist()))
        return Method(**dict(zip(PARTS, parts)))

    def __iter__(self) -> Iterator[Method]:
        return (Method(**dict(zip(PARTS, parts))) for parts in zip(*map(self.column, PARTS)))

    def column(self, part: str) -> list[Any]:
        """That part of each method."""
        j = PARTS.index(part)
        components = list(self.components[j].values())
        return [components[place] for place in self.places[:, j].tolist()]

    def each(self, part: str, value: Callable[[Any], Any]) -> Array:
        """A value of that part of each method, asked for once of every component.  # (n,)"""
        j = PARTS.index(part)
        return np.array([value(c) for c in self.components[j].values()])[self.places[:, j]]

    def texts(self, form: Callable[[str], Any] = str) -> Array:
        """The texts of all methods, as str or as `str.encode` makes them, put together from those of the components."""
        first, *others = (np.array([form(text) for text in own], dtype=object) for own in self.components)
        column, *columns = self.places.T
        return sum(((form(" / ") + texts)[column] for texts, column in zip(others, columns)), first[column])

    def take(self, chosen: Array) -> "Methods":
        """Some of them, by number or by a truth value for each."""
        return replace(self, places=self.places[chosen])

    def with_part(self, part: str, component: Component, chosen: Array) -> "Methods":
        """The same, the chosen ones with this component as that part."""
        j = PARTS.index(part)
        own, places = {**self.components[j], str(component): component}, self.places.copy()
        places[chosen, j] = [*own].index(str(component))
        return Methods((*self.components[:j], own, *self.components[j + 1 :]), places)
