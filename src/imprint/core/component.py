"""Components are values: frozen, comparable, printable, rebuilt from their own text."""

import math
from abc import ABC
from collections.abc import Iterator, Mapping
from dataclasses import Field, dataclass, field, fields
from numbers import Integral, Real
from typing import Any, ClassVar

from imprint.core.errors import ParameterError
from imprint.core.plugins import registered_name


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

    A `detail` stays out of the component's text while it has its default.
    """
    return field(default=default, metadata=dict(doc=doc, ge=ge, gt=gt, choices=choices, detail=detail))


def _coerce(value: Any, f: Field[Any]) -> Any:
    """The value as the plain Python type of the default, or None where it is not legal."""
    limits = f.metadata
    if limits["choices"]:
        return value if isinstance(value, type(f.default)) and value in limits["choices"] else None
    if isinstance(f.default, bool):
        return value if isinstance(value, bool) else None
    whole = isinstance(f.default, int)
    if isinstance(value, bool) or not isinstance(value, Integral if whole else Real):
        return None
    try:
        number: float = int(value) if whole else float(value)  # type: ignore[call-overload]
    except OverflowError:
        return None
    high = (limits["ge"] is None or number >= limits["ge"]) and (limits["gt"] is None or number > limits["gt"])
    return number if high and (whole or math.isfinite(number)) else None


def rule(f: Field[Any]) -> str:
    """The legal values of a parameter in words, as errors, help and docs print them."""
    limits = f.metadata
    if limits["choices"]:
        return "one of " + ", ".join(map(repr, limits["choices"]))
    bound = f" >= {limits['ge']}" if limits["ge"] is not None else ""
    return type(f.default).__name__ + (bound or (f" > {limits['gt']}" if limits["gt"] is not None else ""))


@dataclass(frozen=True, kw_only=True)
class Component(ABC):  # noqa: B024 - the families add the abstract methods
    """A frozen value whose text, such as `kmeans(k=20)`, builds it again."""

    family: ClassVar[str] = ""
    """The package of its family, which is also the group of entry points for plug-ins."""
    absent: ClassVar[Mapping[str, Any]] = {}
    """Values of parameters that a file's text lacks because the parameter is newer than the file."""

    def __post_init__(self) -> None:
        if "__dataclass_fields__" not in vars(type(self)):
            wanted = "write @dataclass(frozen=True, kw_only=True) above the class"
            raise ParameterError(f"{type(self).__name__}: {wanted}.")
        for f in fields(self):
            if "choices" not in f.metadata:
                raise ParameterError(f"{type(self).__name__}.{f.name}: declare it as param(default, meaning).")
            value = getattr(self, f.name)
            legal = _coerce(value, f)
            if legal is None:
                raise ParameterError(f"{type(self).__name__}({f.name}={value!r}): {f.name} must be {rule(f)}.")
            object.__setattr__(self, f.name, legal)

    def _shown(self) -> Iterator[str]:
        for f in fields(self):
            value = getattr(self, f.name)
            if not f.metadata["detail"] or value != f.default:
                yield f"{f.name}={value!r}"

    @classmethod
    def public_name(cls) -> str | None:
        """The name that texts and files use: of a built-in its file's, of a plug-in its entry point's, else None."""
        package, _, name = cls.__module__.rpartition(".")
        return name if package == cls.family else registered_name(cls, cls.family)

    def __str__(self) -> str:
        name, inner = self.public_name() or type(self).__qualname__, ", ".join(self._shown())
        return f"{name}({inner})" if inner else name
