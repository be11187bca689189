"""Products of the parts of a method."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from itertools import product
from typing import Any, NamedTuple

from imprint import aggregators, generators
from imprint.core.component import Component
from imprint.core.errors import ParameterError
from imprint.core.family import Family, unknown
from imprint.method import Method

PARTS = ("norm_pre", "generator", "norm_post", "norm_inf", "aggregator")


class Rule(NamedTuple):
    """A named reason to leave points out of a product."""

    doc: str
    of_method: bool
    keeps: Callable[[Method], bool] = lambda _: True


RULES = {
    "matching_norms": Rule(
        "norm_inf is norm_pre, unless norm_pre is none: proxies of normalised rows meet normalised queries",
        True,
        lambda m: str(m.norm_pre) in ("none", str(m.norm_inf)),
    ),
    "enough_proxies": Rule("an aggregator is left out where a task has fewer proxies than it looks at", False),
}


def as_tuple(value: Any) -> tuple[Any, ...]:
    """A list of things, or one thing instead of a list of one."""
    if isinstance(value, tuple | list):
        return tuple(value)
    return (value,)


@dataclass(frozen=True, kw_only=True)
class Grid:
    """Every combination of parts; `k` and `m` fill in for generators and aggregators that leave theirs open.

    >>> grid = Grid(generator=["mean", "kmeans", "random(k=7)"], k=[1, 5], aggregator=["max", "nearest"], m=[1, 3])
    >>> [str(m.generator) for m in grid.methods()][::3]
    ['mean', 'kmeans(k=1)', 'kmeans(k=5)', 'random(k=7)']
    """

    norm_pre: tuple[str, ...] = ("l2",)
    generator: tuple[str, ...] = ("kmeans(k=20)",)
    norm_post: tuple[str, ...] = ("l2",)
    norm_inf: tuple[str, ...] = ("l2",)
    aggregator: tuple[str, ...] = ("max",)
    k: tuple[int, ...] = ()
    m: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for f in fields(self):
            object.__setattr__(self, f.name, as_tuple(getattr(self, f.name)))
            if not getattr(self, f.name) and f.name in PARTS:
                raise ParameterError(f"Grid({f.name}=[]): {f.name} must name at least one.")
        object.__setattr__(self, "generator", tuple(map(str, self.generator)))
        object.__setattr__(self, "aggregator", tuple(map(str, self.aggregator)))
        next(self.methods())

    @classmethod
    def of(cls, values: Any) -> "Grid":
        """The grid that a mapping describes."""
        known = [f.name for f in fields(cls)]
        if not isinstance(values, Mapping):
            raise ParameterError(f"A grid is a mapping of {', '.join(known)}.")
        for key in values:
            if key not in known:
                raise unknown("key of a grid", key, known)
        return cls(**values)

    def methods(self) -> Iterator[Method]:
        """All combinations in a fixed order, the last part fastest."""
        made = [c for text in self.generator for c in _open(generators.family, text, "k", self.k)]
        deciding = [c for text in self.aggregator for c in _open(aggregators.family, text, "m", self.m)]
        for parts in product(self.norm_pre, made, self.norm_post, self.norm_inf, deciding):
            yield Method.of(**dict(zip(PARTS, parts)))


def _open(family: Family[Any], text: str, name: str, values: tuple[int, ...]) -> list[Component]:
    """The component with every value of a parameter that its text leaves open."""
    component = family.resolve(text)
    if not values or not hasattr(component, name) or f"{name}=" in text.replace(" ", ""):
        return [component]
    return [replace(component, **{name: value}) for value in values]


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
