"""Grids of methods: every combination of components, stored as a table of integer
codes; checks of a study's keys.
"""

import json
import math
import reprlib
from collections.abc import (
    Callable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import (
    Field,
    dataclass,
    field,
    fields,
    replace,
)
from functools import cache, cached_property, partial
from itertools import product
from typing import (
    Any,
    Self,
    TypeAlias,
    TypeVar,
)

import numpy as np

from imprint.core.arrays import Array, factorize
from imprint.core.component import PARTS, Component
from imprint.core.errors import ParameterError, unknown
from imprint.method import FAMILIES, Method

T = TypeVar("T")
Components: TypeAlias = dict[str, Component]  # by text

# That a grid sets if the text of a component does not.
GRID_PARAMETERS = {"generator": "k", "aggregator": "m"}

# Values of keys are stored in 64-bit columns.
BEYOND_INT64 = 2**63


@dataclass(frozen=True, eq=False)
class Methods:
    """A sequence of methods, stored as the distinct components of each part and, for
    each method, integer codes.
    """

    # for each of the five parts, its distinct components
    components: tuple[Components, ...]
    codes: Array  # (n, 5) for each method, the position of each part in `components`

    @classmethod
    def product(cls, axes: Sequence[Sequence[Component]]) -> "Methods":
        """All combinations of the components of the five parts, each once; the last
        part varies fastest.
        """
        components: list[Components] = []
        for axis in axes:
            components.append({str(component): component for component in axis})
        shape = [len(part) for part in components]
        codes = np.indices(shape, dtype=np.int32)
        return cls(tuple(components), codes.reshape(len(PARTS), -1).T)

    @classmethod
    def single(cls, method: Method) -> "Methods":
        """One method."""
        return cls.product([[getattr(method, part)] for part in PARTS])

    @classmethod
    def union(cls, sequences: Sequence["Methods"]) -> "tuple[Methods, list[Array]]":
        """The distinct methods of several sequences, in order of appearance, and their
        indices for each sequence.
        """
        components: list[Components] = []
        columns: list[Array] = []  # the codes of all methods, by part
        for j in range(len(PARTS)):
            of_part: Components = {}
            for methods in sequences:
                of_part.update(methods.components[j])
            code = {text: i for i, text in enumerate(of_part)}
            column = []
            for methods in sequences:
                # from the codes of one sequence to those of all
                translation = np.array([code[text] for text in methods.components[j]])
                column.append(translation[methods.codes[:, j]])
            components.append(of_part)
            columns.append(np.concatenate(column, dtype=np.int32))
        codes = np.stack(columns, axis=1)
        first, index = factorize(*columns)
        ends = np.cumsum([len(methods) for methods in sequences])
        distinct = cls(tuple(components), codes[first])
        return distinct, np.split(index, ends[:-1])

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, i: int) -> Method:
        return next(iter(self.take(np.array([i]))))

    def __iter__(self) -> Iterator[Method]:
        columns = [self.column(part) for part in PARTS]
        for parts in zip(*columns):
            yield Method(**dict(zip(PARTS, parts)))

    def column(self, part: str) -> list[Any]:
        """One part of every method."""
        j = PARTS.index(part)
        components = list(self.components[j].values())
        return [components[code] for code in self.codes[:, j].tolist()]

    def map_part(self, part: str, function: Callable[[Any], Any]) -> Array:
        """A function of one part of every method, evaluated once per distinct
        component.  # (n,)
        """
        j = PARTS.index(part)
        values = [function(component) for component in self.components[j].values()]
        return np.array(values)[self.codes[:, j]]

    def has_type(self, part: str, *types: type) -> Array:
        """Whether one part of every method is of one of these types, and not of a
        subclass.  # (n,)
        """
        return self.map_part(part, lambda component: type(component) in types)

    def are_consistent(self) -> Array:
        """Whether the aggregator of every method can use the proxies of its generator.
        # (n,)

        One that decides by distances needs points.
        """
        are_points = self.map_part("generator", lambda generator: generator.points)
        needs_points = self.map_part(
            "aggregator", lambda aggregator: aggregator.needs_points
        )
        return are_points | ~needs_points

    def encoded(self) -> list[bytes]:
        """The complete texts of all methods, in UTF-8; a component is encoded once.

        They are parts of the keys of experiments. A result must not be used again after
        a default has changed, so every parameter is stated.
        """
        columns = []
        for part, codes in zip(self.components, self.codes.T):
            texts = [one.complete_text.encode() for one in part.values()]
            columns.append(np.array(texts, dtype=object)[codes])
        return [b" / ".join(parts) for parts in zip(*columns)]

    def take(self, chosen: Array) -> "Methods":
        """The methods at some positions, or those where a boolean mask is true."""
        return replace(self, codes=self.codes[chosen])

    def with_part(
        self,
        part: str,
        component: Component,
        chosen: Array,
    ) -> "Methods":
        """The same methods; those chosen by a mask have this component as the given
        part.
        """
        j = PARTS.index(part)
        components = list(self.components)
        components[j] = {**components[j], str(component): component}
        codes = self.codes.copy()
        codes[chosen, j] = list(components[j]).index(str(component))
        return Methods(tuple(components), codes)


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
        from imprint import recipes  # workers read no recipes

        return Method.of(**recipes.describe(text).parts())
    parts = [part.strip() for part in text.split("/")]
    if len(parts) != len(PARTS):
        raise ParameterError(
            f"Cannot read {text!r} as a method. Write {' / '.join(PARTS)}, or the name"
            " of a recipe."
        )
    return Method.of(**dict(zip(PARTS, parts)))


def _unchanged(value: T) -> T:
    return value


def key(
    default: Any,
    types: tuple[type, ...],
    rule: str,
    *,
    minimum: int | None = None,
    required: bool = False,
    convert: Callable[[Any], Any] = _unchanged,
) -> Any:
    """Declare a key once: its default, the types and the minimum of its values, and how
    they are stored.

    A key whose default is a tuple takes a list, or a single value for a list of one. A
    required list is not empty.
    """
    metadata = dict(
        types=types,
        rule=rule,
        minimum=minimum,
        required=required,
        convert=convert,
    )
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, kw_only=True)
class Declaration:
    """A frozen value whose fields are checked, and can be read from a mapping, such as
    that of a YAML file.
    """

    def __post_init__(self) -> None:
        for f in fields(self):
            value = getattr(self, f.name)
            is_list = isinstance(f.default, tuple)
            values = (value,)
            if is_list and isinstance(value, tuple | list):
                values = tuple(value)
            self._check(f, values)
            if is_list:
                # Each value once, in the order given.
                converted = dict.fromkeys(map(f.metadata["convert"], values))
                object.__setattr__(self, f.name, tuple(converted))

    def _check(self, f: "Field[object]", values: Sequence[object]) -> None:
        """Refuse values that a key does not take."""
        call = f"{type(self).__name__}({f.name}="
        for value in values:
            if not _is_legal(value, f):
                shown = reprlib.repr(value)
                if isinstance(f.default, tuple):
                    shown = f"[{shown}]"
                raise ParameterError(
                    f"{call}{shown}): {f.name} must be {f.metadata['rule']}."
                )
        if f.metadata["required"] and not values:
            raise ParameterError(f"{call}[]): {f.name} must name at least one.")

    @classmethod
    def names(cls) -> list[str]:
        """The names of the keys."""
        return [f.name for f in fields(cls)]

    @classmethod
    def of(cls, values: object) -> Self:
        """The value that a mapping describes; a value of this class is returned
        unchanged.
        """
        if isinstance(values, cls):
            return values
        kind = cls.__name__.lower()
        names = cls.names()
        if not isinstance(values, Mapping):
            raise ParameterError(f"A {kind} is a mapping of {', '.join(names)}.")
        for name in values:
            if name not in names:
                raise unknown(f"key of a {kind}", name, names)
        return cls(**values)

    def to_json(self) -> dict[str, object]:
        """The keys with JSON values, which `of` reads."""
        values = {name: getattr(self, name) for name in self.names()}
        text = json.dumps(values, default=_as_json)
        return dict(json.loads(text))


def _is_legal(value: object, f: "Field[object]") -> bool:
    """Whether a key takes a value."""
    # A bool is an int to Python, but in a study it is a mistake.
    if isinstance(value, bool) or not isinstance(value, f.metadata["types"]):
        return False
    minimum = f.metadata["minimum"]
    if minimum is None:
        return True
    return isinstance(value, int) and minimum <= value < BEYOND_INT64


def _as_json(value: object) -> object:
    """A value that is not one of JSON's: a nested declaration, or a component."""
    return value.to_json() if isinstance(value, Declaration) else str(value)


def _component_key(part: str, default: str) -> Any:
    """The key for the components of one part: texts, or objects of a class outside the
    package.
    """
    return key(
        (default,),
        (str, Component),
        "a text such as 'kmeans(k=20)'",
        required=True,
        convert=partial(_as_text, part),
    )


def _as_text(part: str, value: str | Component) -> str | Component:
    """A component with a public name as its text; any other is returned unchanged, if
    no component has its name.
    """
    if not isinstance(value, Component):
        return value
    if value.public_name() is not None:
        return str(value)
    family = FAMILIES[part]
    # Its text would be that of the other component.
    if type(value).__qualname__ in family.names():
        raise ParameterError(
            f"Grid({part}={value}): this class has the name of another {family.kind};"
            " rename it."
        )
    return value


@dataclass(frozen=True, kw_only=True)
class Grid(Declaration):
    """Every combination of components; `k` and `m` apply to generators and aggregators
    that do not state theirs.

    A component is given as a text, or as an object of a class outside the package.
    """

    norm_pre: tuple[str | Component, ...] = _component_key("norm_pre", "l2")
    generator: tuple[str | Component, ...] = _component_key("generator", "kmeans(k=20)")
    norm_post: tuple[str | Component, ...] = _component_key("norm_post", "l2")
    norm_inf: tuple[str | Component, ...] = _component_key("norm_inf", "l2")
    aggregator: tuple[str | Component, ...] = _component_key("aggregator", "max")
    k: tuple[int, ...] = key((), (int,), "int >= 1", minimum=1)
    m: tuple[int, ...] = key((), (int,), "int >= 1", minimum=1)

    def __post_init__(self) -> None:
        """Refuse norms in positions that they do not allow."""
        super().__post_init__()
        # Parts that go together, whatever the grid holds: other norms do not matter.
        legal = {"generator": "mean", "aggregator": "max", **self._first_norms}
        for part in self._first_norms:
            for component in self._axes[part]:
                Method.of(**{**legal, part: component})

    @property
    def _first_norms(self) -> dict[str, Any]:
        """One normaliser for each position."""
        norms = [part for part in PARTS if part.startswith("norm")]
        return {part: self._axes[part][0] for part in norms}

    def check_consistent(self, rule: str) -> None:
        """Refuse an aggregator that cannot use the proxies of a generator.

        `rule` is that of a study which leaves such combinations out.
        """
        # One generator and one aggregator of each kind decide for all of that kind.
        generators = {g.points: g for g in self._axes["generator"]}
        aggregators = {a.needs_points: a for a in self._axes["aggregator"]}
        for generator, aggregator in product(generators.values(), aggregators.values()):
            try:
                Method(**self._first_norms, generator=generator, aggregator=aggregator)
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
        return Methods.product(list(self._axes.values()))

    @cached_property
    def _axes(self) -> dict[str, list[Any]]:
        """The components of every part."""
        axes: dict[str, list[Any]] = {}
        for part in PARTS:
            axes[part] = []
            for value in getattr(self, part):
                axes[part] += self._filled_in(part, value)
        return axes

    def _filled_in(self, part: str, value: str | Component) -> list[Component]:
        """The component, once for every value of the parameter that its text does not
        state.
        """
        component = FAMILIES[part].resolve(value)
        name = GRID_PARAMETERS.get(part, "")
        values = getattr(self, name, ())
        is_stated = f"{name}=" in str(value).replace(" ", "")
        if not values or not hasattr(component, name) or is_stated:
            return [component]
        return [replace(component, **{name: v}) for v in values]
