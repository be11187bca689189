"""The parts of a method as parameters of a scikit-learn estimator, down to those of components: `generator__k`."""

from contextlib import suppress
from dataclasses import asdict
from typing import Any, Self

from sklearn.base import BaseEstimator

from imprint.core.component import PARTS
from imprint.core.errors import ParameterError
from imprint.estimator.fitted import FittedState
from imprint.method import FAMILIES, Method


class MethodParameters(BaseEstimator):  # type: ignore[misc]
    """An estimator with a parameter for each part of a method: a component, or its text."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's arguments; deep, also those of the components, such as `generator__k`."""
        params: dict[str, Any] = super().get_params(deep=False)
        if deep:
            for part in PARTS:
                with suppress(ParameterError):
                    settings = asdict(FAMILIES[part].resolve(params[part]))
                    params |= {f"{part}__{name}": value for name, value in settings.items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Change arguments, or one of a component: `set_params(generator__k=5)`. A fitted model stays as it is."""
        super().set_params(**{name: value for name, value in params.items() if "__" not in name})
        for name, value in params.items():
            part, _, inner = name.partition("__")
            if inner:
                if part not in PARTS:
                    raise ParameterError(
                        f"set_params({name}=...): there is no part {part!r}; parts: {', '.join(PARTS)}."
                    )
                before = getattr(self, part)
                after = FAMILIES[part].changed(before, {inner: value})
                setattr(self, part, str(after) if isinstance(before, str) else after)
        return self

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """The parameters; where `set_params` has changed them since `fit`, also the method that was fitted."""
        given = str(super().__repr__(N_CHAR_MAX))
        learnt: FittedState | None = self.__dict__.get("_learnt")
        try:
            stale = learnt is not None and self._method() != learnt.head.imprinted.method
        except ParameterError:
            stale = True
        return f"{given}, fitted as {learnt.head.imprinted.method}" if learnt is not None and stale else given

    def _method(self) -> Method:
        return Method.of(**{part: getattr(self, part) for part in PARTS})


def as_parameters(method: Method) -> dict[str, Any]:
    """The parts of a method, as text where the text describes the component completely."""
    parts = {part: getattr(method, part) for part in PARTS}
    return {part: str(component) if component.public_name() else component for part, component in parts.items()}
