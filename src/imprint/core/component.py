"""Components are frozen values that can be compared, printed, and built again from
their text; the default method.

A family is a folder: one component per file, the file name is its public name. Plug-ins
join it by entry point.
"""

import ast
import math
from abc import ABC
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import Field, dataclass, field, fields
from functools import cache
from importlib import import_module
from numbers import Integral, Real
from pkgutil import iter_modules
from typing import Any, ClassVar, Generic, TypeGuard, TypeVar

from imprint.core.errors import ParameterError, unknown
from imprint.core.extras import load_plugin, registered, registered_name

DEFAULT_METHOD = dict(
    norm_pre="l2",
    generator="kmeans",
    norm_post="none",
    norm_inf="l2",
    aggregator="kernel",
)
"""The default method of classifiers, models and commands; docs/benchmarks/kernel.md
measures other numbers of proxies than the default of `kmeans`.
"""
PARTS = tuple(DEFAULT_METHOD)  # the names of the five parts of a method
MAX_TEXT_LENGTH = 200  # characters; a component's text is a short call, never a program


def param(
    default: Any,
    doc: str,
    *,
    ge: float | None = None,
    gt: float | None = None,
    choices: tuple[Any, ...] = (),
    read: Callable[[Any], Any] | None = None,
    rule: str = "",
    detail: bool = False,
) -> Any:
    """Declare a parameter once: default, meaning, legal values.

    A `detail` is part of the component's text only if it differs from its default.
    `read` is for values that are not one number: it returns the legal value, None for
    anything else, and `rule` states in words what it accepts.
    """
    limits = dict(ge=ge, gt=gt, choices=choices, read=read, rule=rule)
    return field(default=default, metadata=dict(doc=doc, detail=detail, **limits))


def _coerce(value: Any, f: Field[Any]) -> Any:
    """The value as a Python value of the type of the default, or None if it is not
    legal.
    """
    limits = f.metadata
    if limits["read"]:
        return limits["read"](value)
    if limits["choices"]:
        return (
            value
            if isinstance(value, type(f.default)) and value in limits["choices"]
            else None
        )
    if isinstance(f.default, bool):
        return value if isinstance(value, bool) else None
    is_integer = isinstance(f.default, int)
    if isinstance(value, bool) or not isinstance(
        value, Integral if is_integer else Real
    ):
        return None
    try:
        number: float = int(value) if is_integer else float(value)  # type: ignore[call-overload]
    except OverflowError:
        return None
    in_range = (limits["ge"] is None or number >= limits["ge"]) and (
        limits["gt"] is None or number > limits["gt"]
    )
    return number if in_range and (is_integer or math.isfinite(number)) else None


def rule(f: Field[Any]) -> str:
    """The legal values of a parameter in words, for errors, help and docs."""
    limits = f.metadata
    if limits["rule"]:
        return str(limits["rule"])
    if limits["choices"]:
        return "one of " + ", ".join(map(repr, limits["choices"]))
    bound = f" >= {limits['ge']}" if limits["ge"] is not None else ""
    return type(f.default).__name__ + (
        bound or (f" > {limits['gt']}" if limits["gt"] is not None else "")
    )


@dataclass(frozen=True, kw_only=True)
class Component(ABC):  # noqa: B024 - the families add the abstract methods
    """A frozen value whose text, such as `kmeans(k=20)`, builds it again."""

    # the package of the family, which is also the entry-point group of plug-ins
    family: ClassVar[str] = ""
    # values of newer parameters, for files written before these existed
    absent: ClassVar[Mapping[str, Any]] = {}

    def __post_init__(self) -> None:
        if "__dataclass_fields__" not in vars(type(self)):
            fix = "write @dataclass(frozen=True, kw_only=True) above the class"
            raise ParameterError(f"{type(self).__name__}: {fix}.")
        for f in fields(self):
            if "choices" not in f.metadata:
                raise ParameterError(
                    f"{type(self).__name__}.{f.name}: declare it as param(default,"
                    " meaning)."
                )
            value = getattr(self, f.name)
            legal = _coerce(value, f)
            if legal is None:
                raise ParameterError(
                    f"{type(self).__name__}({f.name}={value!r}): {f.name} must be"
                    f" {rule(f)}."
                )
            object.__setattr__(self, f.name, legal)

    @classmethod
    def public_name(cls) -> str | None:
        """The name in texts and files: the module of a built-in, the entry point of a
        plug-in, else None.
        """
        package, _, name = cls.__module__.rpartition(".")
        return name if package == cls.family else registered_name(cls, cls.family)

    @property
    def complete_text(self) -> str:
        """The text with every parameter, details too: it means the same when a default
        has changed.
        """
        shown = [f"{f.name}={getattr(self, f.name)!r}" for f in fields(self)]
        name = self.public_name() or type(self).__qualname__
        return f"{name}({', '.join(shown)})"

    def __str__(self) -> str:
        values = {f: getattr(self, f.name) for f in fields(self)}
        shown = [
            f"{f.name}={v!r}"
            for f, v in values.items()
            if not f.metadata["detail"] or v != f.default
        ]
        name = self.public_name() or type(self).__qualname__
        return f"{name}({', '.join(shown)})" if shown else name


C = TypeVar("C", bound=Component)


class Family(Generic[C]):
    """The components of one package, by name or by text."""

    def __init__(self, package: str, base: type[C]):
        self.package = package
        self.base = base
        self.kind = base.__name__.lower()
        self.load = cache(self._load)

    def names(self) -> list[str]:
        """Every public name, of built-in components and of plug-ins, without importing
        the files behind them.
        """
        return sorted({*self.builtin(), *registered(self.package)})

    def builtin(self) -> list[str]:
        """The names of the components in the folder."""
        path = import_module(self.package).__path__
        return sorted(m.name for m in iter_modules(path) if not m.name.startswith("_"))

    def __iter__(self) -> Iterator[type[C]]:
        return map(self.load, self.names())

    def _load(self, name: str) -> type[C]:
        # plug-ins are looked up only if needed, because that takes longer
        if name in self.builtin():
            module = import_module(f"{self.package}.{name}")
            (cls,) = (
                c
                for c in vars(module).values()
                if self._is_member(c) and c.__module__ == module.__name__
            )
            return cls
        if name not in registered(self.package):
            raise unknown(self.kind, name, self.names())
        cls = load_plugin(self.package, name)
        if not self._is_member(cls):
            value = registered(self.package)[name].value
            raise ParameterError(
                f"The entry point {name} = {value} of {self.package} is not a"
                f" {self.base.__name__}."
            )
        return cls

    def _is_member(self, cls: Any) -> TypeGuard[type[C]]:
        return isinstance(cls, type) and issubclass(cls, self.base)

    def stored_text(self, component: C) -> str:
        """The text of a component in a file; refuses a component that this text does
        not build again.
        """
        with suppress(ParameterError):
            if component.public_name() and self.resolve(str(component)) == component:
                return str(component)
        cls = type(component)
        raise ParameterError(
            f"save: {cls.__qualname__} is not a registered {self.kind}, so a file"
            " cannot name it; give its package "
            f'the entry point [project.entry-points."{self.package}"] name ='
            f' "{cls.__module__}:{cls.__qualname__}" '
            f"with a name that is not taken."
        )

    def resolve(self, spec: str | C) -> C:
        """The component of a text such as 'kmeans' or 'kmeans(k=20)'; a component is
        returned unchanged.
        """
        return spec if isinstance(spec, self.base) else _build(*self._parse(spec))

    def restore(self, text: str) -> C:
        """The component of a text from a file; parameters newer than the file get their
        `absent` values.
        """
        cls, parameters = self._parse(text)
        return _build(cls, {**cls.absent, **parameters})

    def changed(self, spec: str | C, changes: dict[str, Any]) -> C:
        """The component with some parameters changed."""
        component = self.resolve(spec)
        return _build(type(component), {**vars(component), **changes})

    def _parse(self, text: object) -> tuple[type[C], dict[str, Any]]:
        """The class and the parameters that a text names."""
        try:
            if not isinstance(text, str) or len(text) > MAX_TEXT_LENGTH:
                raise TypeError
            call = ast.parse(
                text.strip() if "(" in text else f"{text.strip()}()", mode="eval"
            ).body
            if (
                not isinstance(call, ast.Call)
                or not isinstance(call.func, ast.Name)
                or call.args
            ):
                raise TypeError
            parameters = {str(k.arg): ast.literal_eval(k.value) for k in call.keywords}
        except (TypeError, SyntaxError, ValueError, RecursionError, MemoryError):
            shown = (
                repr(text)
                if len(repr(text)) <= MAX_TEXT_LENGTH
                else f"{repr(text)[:60]}..."
            )
            rule = "Write a name or a call, such as 'name(k=20)'"
            raise ParameterError(
                f"Cannot read {shown} as a {self.kind}. {rule}."
            ) from None
        return self.load(call.func.id), parameters


def _build(cls: type[C], values: dict[str, Any]) -> C:
    names = [f.name for f in fields(cls)]
    for key in values:
        if key not in names:
            raise ParameterError(
                f"{cls.__name__} has no parameter {key!r}. It takes:"
                f" {', '.join(names) or 'none'}."
            )
    return cls(**values)
