"""Products of the parts of a method, and what the keys of a study may hold."""

import math
import reprlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from imprint.core.component import PARTS, Component
from imprint.core.errors import ParameterError
from imprint.core.family import Family, unknown
from imprint.method import FAMILIES, Method
from imprint.normalisers._base import Normaliser
from imprint.normalisers.none import NoNorm
from imprint.study.methods import Methods

OPEN = {"generator": "k", "aggregator": "m"}
"""The parameter of a part that a grid fills in where a text leaves it open."""


class Holds(NamedTuple):
    """What a key holds: values of some types, each in the range, one alone or a list of them."""

    types: tuple[type, ...]
    words: str
    least: int | None = None
    one: bool = False


TEXT = Holds((str,), "text")
COMPONENT = Holds((str, Component), "a text such as 'kmeans(k=20)'")
GRID_KEYS = dict.fromkeys(PARTS, COMPONENT) | dict.fromkeys(("k", "m"), Holds((int,), "int >= 1", least=1))


def checked(owner: str, key: str, value: Any, holds: Holds) -> Any:
    """The value of a key as a tuple, or as it is where the key holds one; refuses any other in one sentence."""
    values = tuple(value) if isinstance(value, tuple | list) and not holds.one else (value,)
    for v in values:
        fits = isinstance(v, holds.types) and not isinstance(v, bool)
        if not fits or (holds.least is not None and not holds.least <= v < 2**63):
            shown = reprlib.repr(v) if holds.one else f"[{reprlib.repr(v)}]"
            raise ParameterError(f"{owner}({key}={shown}): {key} must be {holds.words}.")
    return value if holds.one else values


def known_keys(kind: str, values: Any, known: Iterable[str]) -> dict[str, Any]:
    """A mapping whose keys are all known, such as a YAML file holds."""
    if not isinstance(values, Mapping):
        raise ParameterError(f"A {kind} is a mapping of {', '.join(known)}.")
    for key in values:
        if key not in known:
            raise unknown(f"key of a {kind}", key, known)
    return {str(k): v for k, v in values.items()}


class Rule(NamedTuple):
    """A named reason to leave points out of a product."""

    doc: str
    keeps: Callable[[Normaliser, Normaliser], bool] | None = None
    """Whether it keeps methods with these `norm_pre` and `norm_inf`; None where that depends on the task."""


RULES = {
    "matching_norms": Rule(
        "norm_inf is norm_pre, unless norm_pre is none: proxies of normalised rows meet normalised queries",
        lambda pre, inf: isinstance(pre, NoNorm) or pre == inf,
    ),
    "enough_proxies": Rule("an aggregator is left out where a task has fewer proxies than it looks at"),
}


@dataclass(frozen=True, kw_only=True)
class Grid:
    """Every combination of parts; `k` and `m` fill in for generators and aggregators that leave theirs open.

    A part is a text, or a component of one's own.

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
        """How many combinations there are; equal ones count as often as they are named."""
        return math.prod(len(axis) for axis in self._axes)

    def methods(self) -> Methods:
        """All combinations, each once, in a fixed order, the last part fastest."""
        components = tuple({str(c): c for c in axis} for axis in self._axes)
        places = np.indices([len(own) for own in components], dtype=np.int32)
        return Methods(components, places.reshape(len(PARTS), -1).T)

    def norms(self) -> Iterator[tuple[Normaliser, Normaliser]]:
        """The combinations of `norm_pre` and `norm_inf`."""
        return product(*(self._axes[PARTS.index(part)] for part in ("norm_pre", "norm_inf")))

    @cached_property
    def _axes(self) -> list[list[Any]]:
        """The components of every part."""
        return [[c for v in getattr(self, part) for c in self._opened(part, v)] for part in PARTS]

    def _opened(self, part: str, value: Any) -> list[Component]:
        """The component with every value of the parameter that its text leaves open."""
        component, name = FAMILIES[part].resolve(value), OPEN.get(part, "")
        values = getattr(self, name, ())
        if not values or not hasattr(component, name) or f"{name}=" in str(value).replace(" ", ""):
            return [component]
        return [replace(component, **{name: v}) for v in values]

    def _check_parts(self) -> None:
        """Refuse a norm where it may not stand, and a generator with an aggregator that cannot use its proxies."""
        first = dict(zip(PARTS, (axis[0] for axis in self._axes)))
        for part, axis in zip(PARTS, self._axes):
            for component in axis if part.startswith("norm") else ():
                Method.of(**{**first, part: component})
        makers = {g.points: g for g in self._axes[PARTS.index("generator")]}
        deciders = {a.needs_points: a for a in self._axes[PARTS.index("aggregator")]}
        for generator, aggregator in product(makers.values(), deciders.values()):
            Method(**{**first, "generator": generator, "aggregator": aggregator})


def _as_text(key: str, value: Any) -> Any:
    """A component as the text that stands for it; one of one's own as it is, unless its text means another."""
    if not isinstance(value, Component):
        return value
    family: Family[Any] = FAMILIES[key]
    if value.public_name() is not None:
        return str(value)
    if type(value).__qualname__ in family.names():
        raise ParameterError(f"Grid({key}={value}): this class has the name of another {family.kind}; rename it.")
    return value


def method_from_text(text: str) -> Method:
    """The method of a recipe's name or of five parts between slashes.

    >>> print(method_from_text("l2/mean/none/l2/max"))
    l2 / mean / none / l2 / max
    """
    if "/" not in str(text):
        from imprint import recipes  # brings scikit-learn along, which workers can do without

        return Method.of(**recipes.describe(text).parts())
    parts = [part.strip() for part in str(text).split("/")]
    if len(parts) != len(PARTS):
        raise ParameterError(f"Cannot read {text!r} as a method. Write {' / '.join(PARTS)}, or the name of a recipe.")
    return Method.of(**dict(zip(PARTS, parts)))
