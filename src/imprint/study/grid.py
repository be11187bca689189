"""Grids of methods: every combination of components, stored as a table of integer
codes; checks of a study's keys.
"""

import json
import math
import reprlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache, cached_property, partial
from itertools import chain, product
from typing import Any, Self

import numpy as np

from imprint.core.arrays import Array, factorize
from imprint.core.component import PARTS, Component, Family
from imprint.core.errors import ParameterError, unknown
from imprint.method import FAMILIES, Method


@dataclass(frozen=True, eq=False)
class Methods:
    """A sequence of methods, stored as the distinct components of each part and, for
    each method, integer codes.
    """

    # for each of the five parts, its distinct components by text
    components: tuple[dict[str, Any], ...]
    codes: Array  # (n, 5) for each method, the position of each part in `components`

    @classmethod
    def product(cls, axes: Sequence[Sequence[Component]]) -> "Methods":
        """All combinations of the components of the five parts, each once; the last
        part varies fastest.
        """
        components = tuple({str(c): c for c in axis} for axis in axes)
        codes = np.indices([len(axis) for axis in components], dtype=np.int32)
        return cls(components, codes.reshape(len(PARTS), -1).T)

    @classmethod
    def single(cls, method: Method) -> "Methods":
        """One method."""
        return cls.product([[getattr(method, part)] for part in PARTS])

    @classmethod
    def union(cls, sequences: Sequence["Methods"]) -> "tuple[Methods, list[Array]]":
        """The distinct methods of several sequences, in order of appearance, and their
        indices for each sequence.
        """
        components = tuple(
            dict(chain(*(p.items() for p in part)))
            for part in zip(*(m.components for m in sequences))
        )
        code = [{text: i for i, text in enumerate(part)} for part in components]
        columns = [
            [
                np.array([code[j][text] for text in m.components[j]])[m.codes[:, j]]
                for j in range(len(PARTS))
            ]
            for m in sequences
        ]
        codes = np.concatenate(columns, axis=1, dtype=np.int32)
        first, index = factorize(*codes)
        return cls(components, codes.T[first]), np.split(
            index, np.cumsum([len(m) for m in sequences])[:-1]
        )

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, i: int) -> Method:
        return next(iter(self.take(np.array([i]))))

    def __iter__(self) -> Iterator[Method]:
        return (
            Method(**dict(zip(PARTS, parts))) for parts in zip(*map(self.column, PARTS))
        )

    def column(self, part: str) -> list[Any]:
        """One part of every method."""
        components = list(self.components[PARTS.index(part)].values())
        return [components[code] for code in self.codes[:, PARTS.index(part)].tolist()]

    def map_part(self, part: str, function: Callable[[Any], Any]) -> Array:
        """A function of one part of every method, evaluated once per distinct
        component.  # (n,)
        """
        j = PARTS.index(part)
        return np.array([function(c) for c in self.components[j].values()])[
            self.codes[:, j]
        ]

    def has_type(self, part: str, *types: type) -> Array:
        """Whether one part of every method is of one of these types, and not of a
        subclass.  # (n,)
        """
        return self.map_part(part, lambda component: type(component) in types)

    def are_consistent(self) -> Array:
        """Whether the aggregator of every method can use the proxies of its generator:
        one that decides by distances needs points.  # (n,)
        """
        are_points = self.map_part("generator", lambda generator: generator.points)
        needs_points = self.map_part(
            "aggregator", lambda aggregator: aggregator.needs_points
        )
        return are_points | ~needs_points

    def encoded(self) -> list[bytes]:
        """The texts of all methods, in UTF-8; a component is encoded once."""
        texts = (
            np.array([text.encode() for text in part], dtype=object)
            for part in self.components
        )
        return list(
            map(
                b" / ".join,
                zip(*(part[codes] for part, codes in zip(texts, self.codes.T))),
            )
        )

    def take(self, chosen: Array) -> "Methods":
        """The methods at some positions, or those where a boolean mask is true."""
        return replace(self, codes=self.codes[chosen])

    def with_part(self, part: str, component: Component, chosen: Array) -> "Methods":
        """The same methods; those chosen by a mask have this component as the given
        part.
        """
        j = PARTS.index(part)
        components, codes = (
            {**self.components[j], str(component): component},
            self.codes.copy(),
        )
        codes[chosen, j] = [*components].index(str(component))
        return Methods(
            (*self.components[:j], components, *self.components[j + 1 :]), codes
        )


@cache
def method_from_text(text: str) -> Method:
    """The method of a recipe, or of five components separated by slashes.

    Examples
    --------
    >>> from imprint.study import method_from_text
    >>> str(method_from_text("qi2018"))
    'l2 / mean / l2 / l2 / max'
    """
    if "/" not in text:
        from imprint import recipes  # imports scikit-learn, which workers do not need

        return Method.of(**recipes.describe(text).parts())
    parts = [part.strip() for part in text.split("/")]
    if len(parts) != len(PARTS):
        raise ParameterError(
            f"Cannot read {text!r} as a method. Write {' / '.join(PARTS)}, or the name"
            " of a recipe."
        )
    return Method.of(**dict(zip(PARTS, parts)))


def key(
    default: Any,
    types: tuple[type, ...],
    rule: str,
    *,
    minimum: int | None = None,
    required: bool = False,
    convert: Callable[[Any], Any] = lambda value: value,
) -> Any:
    """Declare a key once: its default, the types and the minimum of its values, and how
    they are stored.

    A key whose default is a tuple takes a list, or a single value for a list of one. A
    required list is not empty.
    """
    metadata = dict(
        types=types, rule=rule, minimum=minimum, required=required, convert=convert
    )
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, kw_only=True)
class Declaration:
    """A frozen value whose fields are checked, and can be read from a mapping, such as
    that of a YAML file.
    """

    def __post_init__(self) -> None:
        for f in fields(self):
            types, minimum = f.metadata["types"], f.metadata["minimum"]
            is_list = isinstance(f.default, tuple)
            value, call = getattr(self, f.name), f"{type(self).__name__}({f.name}="
            values = (
                tuple(value)
                if isinstance(value, tuple | list) and is_list
                else (value,)
            )
            for v in values:
                is_legal = isinstance(v, types) and not isinstance(v, bool)
                if not is_legal or (minimum is not None and not minimum <= v < 2**63):
                    shown = f"[{reprlib.repr(v)}]" if is_list else reprlib.repr(v)
                    raise ParameterError(
                        f"{call}{shown}): {f.name} must be {f.metadata['rule']}."
                    )
            if f.metadata["required"] and not values:
                raise ParameterError(f"{call}[]): {f.name} must name at least one.")
            if is_list:
                object.__setattr__(
                    self,
                    f.name,
                    tuple(dict.fromkeys(map(f.metadata["convert"], values))),
                )

    @classmethod
    def names(cls) -> list[str]:
        """The names of the keys."""
        return [f.name for f in fields(cls)]

    @classmethod
    def of(cls, values: Any) -> Self:
        """The value that a mapping describes; a value of this class is returned
        unchanged.
        """
        if isinstance(values, cls):
            return values
        kind, names = cls.__name__.lower(), cls.names()
        if not isinstance(values, Mapping):
            raise ParameterError(f"A {kind} is a mapping of {', '.join(names)}.")
        for name in values:
            if name not in names:
                raise unknown(f"key of a {kind}", name, names)
        return cls(**values)

    def to_json(self) -> dict[str, Any]:
        """The keys with JSON values, which `of` reads."""
        values = {name: getattr(self, name) for name in self.names()}
        as_json = json.dumps(
            values,
            default=lambda v: v.to_json() if isinstance(v, Declaration) else str(v),
        )
        return dict(json.loads(as_json))


def _component_key(part: str, default: str) -> Any:
    """The key for the components of one part: texts, or objects of a class outside the
    package.
    """
    example = "a text such as 'kmeans(k=20)'"
    return key(
        (default,),
        (str, Component),
        example,
        required=True,
        convert=partial(_as_text, part),
    )


def _as_text(part: str, value: Any) -> Any:
    """A component with a public name as its text; any other is returned unchanged, if
    no component has its name.
    """
    if not isinstance(value, Component):
        return value
    family: Family[Any] = FAMILIES[part]
    if value.public_name() is not None:
        return str(value)
    if type(value).__qualname__ in family.names():
        raise ParameterError(
            f"Grid({part}={value}): this class has the name of another {family.kind};"
            " rename it."
        )
    return value


# that a grid sets if the text of a component does not
GRID_PARAMETERS = {"generator": "k", "aggregator": "m"}


@dataclass(frozen=True, kw_only=True)
class Grid(Declaration):
    """Every combination of components; `k` and `m` apply to generators and aggregators
    that do not state theirs.

    A component is given as a text, or as an object of a class outside the package.
    """

    norm_pre: tuple[Any, ...] = _component_key("norm_pre", "l2")
    generator: tuple[Any, ...] = _component_key("generator", "kmeans(k=20)")
    norm_post: tuple[Any, ...] = _component_key("norm_post", "l2")
    norm_inf: tuple[Any, ...] = _component_key("norm_inf", "l2")
    aggregator: tuple[Any, ...] = _component_key("aggregator", "max")
    k: tuple[int, ...] = key((), (int,), "int >= 1", minimum=1)
    m: tuple[int, ...] = key((), (int,), "int >= 1", minimum=1)

    def __post_init__(self) -> None:
        """Refuse norms in positions that they do not allow."""
        super().__post_init__()
        # parts that go together, whatever the grid holds: other norms do not matter
        first = {"generator": "mean", "aggregator": "max"}
        first |= {part: axis[0] for part, axis in self._axes.items() if "norm" in part}
        for part, axis in self._axes.items():
            for component in axis if part.startswith("norm") else ():
                Method.of(**{**first, part: component})

    def check_consistent(self, rule: str) -> None:
        """Refuse an aggregator that cannot use the proxies of a generator; `rule` is
        that of a study which leaves such combinations out.
        """
        norms = {part: axis[0] for part, axis in self._axes.items() if "norm" in part}
        # one generator and one aggregator of each kind decide for all of that kind
        generators = {g.points: g for g in self._axes["generator"]}
        aggregators = {a.needs_points: a for a in self._axes["aggregator"]}
        for generator, aggregator in product(generators.values(), aggregators.values()):
            try:
                Method(**norms, generator=generator, aggregator=aggregator)
            except ParameterError as e:
                sentence = str(e).rstrip(".")
                raise ParameterError(
                    f"{sentence}, or leave such combinations out with the rule {rule}."
                ) from None

    @property
    def points(self) -> int:
        """The number of combinations, with repetitions."""
        return math.prod(map(len, self._axes.values()))

    def methods(self) -> Methods:
        """All combinations, each once; the last part varies fastest."""
        return Methods.product([*self._axes.values()])

    @cached_property
    def _axes(self) -> dict[str, list[Any]]:
        """The components of every part."""
        return {
            part: [c for v in getattr(self, part) for c in self._filled_in(part, v)]
            for part in PARTS
        }

    def _filled_in(self, part: str, value: Any) -> list[Component]:
        """The component, once for every value of the parameter that its text does not
        state.
        """
        component, name = FAMILIES[part].resolve(value), GRID_PARAMETERS.get(part, "")
        values = getattr(self, name, ())
        if (
            not values
            or not hasattr(component, name)
            or f"{name}=" in str(value).replace(" ", "")
        ):
            return [component]
        return [replace(component, **{name: v}) for v in values]
