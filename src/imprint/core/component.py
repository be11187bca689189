"""Components are frozen values that can be compared, printed, and built again from their text; the default method."""

import math
from abc import ABC
from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from numbers import Integral, Real
from typing import Any, ClassVar

from imprint.core.errors import ParameterError
from imprint.core.extras import registered_name

DEFAULT_METHOD = dict(norm_pre="l2", generator="kmeans(k=50)", norm_post="none", norm_inf="l2", aggregator="kernel")
"""The default method of classifiers, models and commands. docs/methods.md measures other values of k."""
PARTS = tuple(DEFAULT_METHOD)  # the names of the five parts of a method


def param(
    default: Any,
    doc: str,
    *,
    ge: float | None = None,
    gt: float | None = None,
    choices: tuple[Any, ...] = (),
    detail: bool = False,
) -> Any:
    """Declare a parameter once: default, meaning, legal values.

    A `detail` is part of the component's text only if it differs from its default.
    """
    return field(default=default, metadata=dict(doc=doc, ge=ge, gt=gt, choices=choices, detail=detail))


def _coerce(value: Any, f: Field[Any]) -> Any:
    """The value as a Python value of the type of the default, or None if it is not legal."""
    limits = f.metadata
    if limits["choices"]:
        return value if isinstance(value, type(f.default)) and value in limits["choices"] else None
    if isinstance(f.default, bool):
        return value if isinstance(value, bool) else None
    is_integer = isinstance(f.default, int)
    if isinstance(value, bool) or not isinstance(value, Integral if is_integer else Real):
        return None
    try:
        number: float = int(value) if is_integer else float(value)  # type: ignore[call-overload]
    except OverflowError:
        return None
    in_range = (limits["ge"] is None or number >= limits["ge"]) and (limits["gt"] is None or number > limits["gt"])
    return number if in_range and (is_integer or math.isfinite(number)) else None


def rule(f: Field[Any]) -> str:
    """The legal values of a parameter in words, for errors, help and docs."""
    limits = f.metadata
    if limits["choices"]:
        return "one of " + ", ".join(map(repr, limits["choices"]))
    bound = f" >= {limits['ge']}" if limits["ge"] is not None else ""
    return type(f.default).__name__ + (bound or (f" > {limits['gt']}" if limits["gt"] is not None else ""))


@dataclass(frozen=True, kw_only=True)
class Component(ABC):  # noqa: B024 - the families add the abstract methods
    """A frozen value whose text, such as `kmeans(k=20)`, builds it again."""

    family: ClassVar[str] = ""  # the package of the family, which is also the entry-point group of plug-ins
    absent: ClassVar[Mapping[str, Any]] = {}  # values of newer parameters, for files written before these existed

    def __post_init__(self) -> None:
        if "__dataclass_fields__" not in vars(type(self)):
            fix = "write @dataclass(frozen=True, kw_only=True) above the class"
            raise ParameterError(f"{type(self).__name__}: {fix}.")
        for f in fields(self):
            if "choices" not in f.metadata:
                raise ParameterError(f"{type(self).__name__}.{f.name}: declare it as param(default, meaning).")
            value = getattr(self, f.name)
            legal = _coerce(value, f)
            if legal is None:
                raise ParameterError(f"{type(self).__name__}({f.name}={value!r}): {f.name} must be {rule(f)}.")
            object.__setattr__(self, f.name, legal)

    @classmethod
    def public_name(cls) -> str | None:
        """The name in texts and files: the module of a built-in, the entry point of a plug-in, else None."""
        package, _, name = cls.__module__.rpartition(".")
        return name if package == cls.family else registered_name(cls, cls.family)

    def __str__(self) -> str:
        values = {f: getattr(self, f.name) for f in fields(self)}
        shown = [f"{f.name}={v!r}" for f, v in values.items() if not f.metadata["detail"] or v != f.default]
        name = self.public_name() or type(self).__qualname__
        return f"{name}({', '.join(shown)})" if shown else name
