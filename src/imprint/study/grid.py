"""Grids of methods: every combination of components, stored as a table of integer codes; checks of a study's keys."""

import math
import reprlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, product
from typing import Any, NamedTuple

import numpy as np

from imprint.core.arrays import factorize
from imprint.core.component import PARTS, Component
from imprint.core.errors import ParameterError
from imprint.core.family import Family, unknown
from imprint.core.types import Array
from imprint.method import FAMILIES, Method
from imprint.normalisers._base import Normaliser
from imprint.normalisers.none import NoNorm

OPEN = {"generator": "k", "aggregator": "m"}
"""The parameter of a part that a grid fills in if a text does not state it."""


@dataclass(frozen=True, eq=False)
class Methods:
    """A sequence of methods: the few components of each part once, and integer codes for every method."""

    components: tuple[dict[str, Any], ...]
    """For each of the five parts, its distinct components by text."""
    codes: Array  # (n, 5) for each method, the position of each part in `components`

    @classmethod
    def single(cls, method: Method) -> "Methods":
        """A sequence of one method."""
        components = (getattr(method, part) for part in PARTS)
        return cls(tuple({str(c): c} for c in components), np.zeros((1, len(PARTS)), dtype=np.int32))

    @classmethod
    def union(cls, sequences: Sequence["Methods"]) -> "tuple[Methods, list[Array]]":
        """The methods of several sequences, each once, in order of first appearance; their indices, by sequence."""
        components = tuple(dict(chain(*(p.items() for p in part))) for part in zip(*(m.components for m in sequences)))
        code = [{text: i for i, text in enumerate(part)} for part in components]
        columns = [
            [np.array([code[j][text] for text in m.components[j]])[m.codes[:, j]] for j in range(len(PARTS))]
            for m in sequences
        ]
        codes = np.concatenate(columns, axis=1, dtype=np.int32)
        first, index = factorize(np.ravel_multi_index(tuple(codes), [len(part) for part in components]))
        return cls(components, codes.T[first]), np.split(index, np.cumsum([len(m) for m in sequences])[:-1])

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

    def has_type(self, part: str, *types: type) -> Array:
        """Whether one part of every method is of one of these types, and not of a subclass.  # (n,)"""
        return self.map_part(part, lambda component: type(component) in types)

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


class Holds(NamedTuple):
    """The values of a key: their types and minimum, and whether it is one value or a list."""

    types: tuple[type, ...]
    words: str
    least: int | None = None
    one: bool = False


TEXT = Holds((str,), "text")
COMPONENT = Holds((str, Component), "a text such as 'kmeans(k=20)'")
GRID_KEYS = dict.fromkeys(PARTS, COMPONENT) | dict.fromkeys(("k", "m"), Holds((int,), "int >= 1", least=1))


def checked(owner: str, key: str, value: Any, holds: Holds) -> Any:
    """The checked value of a key, as a tuple unless the key holds a single value."""
    values = tuple(value) if isinstance(value, tuple | list) and not holds.one else (value,)
    for v in values:
        fits = isinstance(v, holds.types) and not isinstance(v, bool)
        if not fits or (holds.least is not None and not holds.least <= v < 2**63):
            shown = reprlib.repr(v) if holds.one else f"[{reprlib.repr(v)}]"
            raise ParameterError(f"{owner}({key}={shown}): {key} must be {holds.words}.")
    return value if holds.one else values


def known_keys(kind: str, values: Any, known: Iterable[str]) -> dict[str, Any]:
    """A mapping, such as that of a YAML file, after a check that all its keys are known."""
    if not isinstance(values, Mapping):
        raise ParameterError(f"A {kind} is a mapping of {', '.join(known)}.")
    for key in values:
        if key not in known:
            raise unknown(f"key of a {kind}", key, known)
    return {str(k): v for k, v in values.items()}


RULES: dict[str, Callable[[Normaliser, Normaliser], bool] | None] = {
    "matching_norms": lambda norm_pre, norm_inf: isinstance(norm_pre, NoNorm) or norm_pre == norm_inf,
    "enough_proxies": None,  # an aggregator is left out where a task has fewer proxies than it looks at
}
"""Whether a rule allows this `norm_pre` and `norm_inf`; None if that depends on the task."""


@dataclass(frozen=True, kw_only=True)
class Grid:
    """Every combination of components; `k` and `m` apply to generators and aggregators that do not state theirs.

    A component is given as a text, or as an object of a class outside the package.

    >>> grid = Grid(generator=["mean", "kmeans", "random(k=7)"], k=[1, 5], aggregator=["max", "nearest"], m=[1, 3])
    >>> [str(method.generator) for method in grid.methods()][::3]
    ['mean', 'kmeans(k=1)', 'kmeans(k=5)', 'random(k=7)']
    """

    norm_pre: tuple[Any, ...] = ("l2",)
    generator: tuple[Any, ...] = ("kmeans(k=20)",)
    norm_post: tuple[Any, ...] = ("l2",)
    norm_inf: tuple[Any, ...] = ("l2",)
    aggregator: tuple[Any, ...] = ("max",)
    k: tuple[int, ...] = ()
    m: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for key, holds in GRID_KEYS.items():
            values = checked("Grid", key, getattr(self, key), holds)
            if not values and key in PARTS:
                raise ParameterError(f"Grid({key}=[]): {key} must name at least one.")
            object.__setattr__(self, key, tuple(_as_text(key, v) for v in values))
        self._check_parts()

    @classmethod
    def of(cls, values: Any) -> "Grid":
        """The grid that a mapping describes."""
        return cls(**known_keys("grid", values, GRID_KEYS))

    @property
    def points(self) -> int:
        """The number of combinations, with repetitions."""
        return math.prod(len(axis) for axis in self._axes)

    def methods(self) -> Methods:
        """All combinations, each once; the last part varies fastest."""
        components = tuple({str(c): c for c in axis} for axis in self._axes)
        codes = np.indices([len(axis) for axis in components], dtype=np.int32)
        return Methods(components, codes.reshape(len(PARTS), -1).T)

    def norms(self) -> Iterator[tuple[Normaliser, Normaliser]]:
        """The combinations of `norm_pre` and `norm_inf`."""
        return product(*(self._axes[PARTS.index(part)] for part in ("norm_pre", "norm_inf")))

    @cached_property
    def _axes(self) -> list[list[Any]]:
        """The components of every part."""
        return [[c for v in getattr(self, part) for c in self._filled_in(part, v)] for part in PARTS]

    def _filled_in(self, part: str, value: Any) -> list[Component]:
        """The component, once for every value of the parameter that its text does not state."""
        component, name = FAMILIES[part].resolve(value), OPEN.get(part, "")
        values = getattr(self, name, ())
        if not values or not hasattr(component, name) or f"{name}=" in str(value).replace(" ", ""):
            return [component]
        return [replace(component, **{name: v}) for v in values]

    def _check_parts(self) -> None:
        """Refuse norms in positions that they do not allow, and aggregators that cannot use a generator's proxies."""
        first = dict(zip(PARTS, (axis[0] for axis in self._axes)))
        for part, axis in zip(PARTS, self._axes):
            for component in axis if part.startswith("norm") else ():
                Method.of(**{**first, part: component})
        generators = {g.points: g for g in self._axes[PARTS.index("generator")]}
        aggregators = {a.needs_points: a for a in self._axes[PARTS.index("aggregator")]}
        for generator, aggregator in product(generators.values(), aggregators.values()):
            Method(**{**first, "generator": generator, "aggregator": aggregator})


def _as_text(key: str, value: Any) -> Any:
    """A component of the package as its text; a component from outside as it is, if its name is not taken."""
    if not isinstance(value, Component):
        return value
    family: Family[Any] = FAMILIES[key]
    if value.public_name() is not None:
        return str(value)
    if type(value).__qualname__ in family.names():
        raise ParameterError(f"Grid({key}={value}): this class has the name of another {family.kind}; rename it.")
    return value


def method_from_text(text: str) -> Method:
    """The method of a recipe, or of five components separated by slashes.

    >>> print(method_from_text("l2/mean/none/l2/max"))
    l2 / mean / none / l2 / max
    """
    if "/" not in str(text):
        from imprint import recipes  # imports scikit-learn, which workers do not need

        return Method.of(**recipes.describe(text).parts())
    parts = [part.strip() for part in str(text).split("/")]
    if len(parts) != len(PARTS):
        raise ParameterError(f"Cannot read {text!r} as a method. Write {' / '.join(PARTS)}, or the name of a recipe.")
    return Method.of(**dict(zip(PARTS, parts)))
