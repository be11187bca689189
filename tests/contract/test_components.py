"""Every component is a value, including minimal ones from outside. Built-in components are discovered, not listed."""

import pickle
import re
from dataclasses import fields

import numpy as np
import pytest
from tests.contract.found import (
    BUILTIN,
    FAMILIES,
    MINIMAL,
    NORMALISERS,
    PARAMETERS,
    named,
    other_value,
    run,
)
from tests.contract.minimal import Halve

from imprint import generators
from imprint.core.component import rule
from imprint.core.errors import ParameterError
from imprint.export.onnx import Graph


class Huge(int):
    """An integer too large for a float."""

    def __str__(self):
        return "huge"


HUGE = Huge(10**400)


@pytest.mark.parametrize(("family", "cls"), named([*BUILTIN, *MINIMAL]))
def test_is_a_value(family, cls):
    a = cls()
    assert a == cls()
    assert hash(a) == hash(cls())
    assert pickle.loads(pickle.dumps(a)) == a == family.resolve(a)
    with pytest.raises(AttributeError):
        a.k = 3


@pytest.mark.parametrize(("family", "cls"), named(BUILTIN))
def test_a_builtin_is_final_documented_and_found_by_its_text(family, cls):
    own = [s for s in cls.__subclasses__() if s.__module__.startswith("imprint.")]
    assert own == []
    assert cls.__doc__
    assert "(" not in cls.__doc__.split("\n")[0][:12], (
        "the dataclass made this docstring, no person did"
    )
    assert all(p.metadata["doc"] for p in fields(cls))
    assert (
        family.resolve(str(cls())) == family.resolve(family.stored_text(cls())) == cls()
    )


@pytest.mark.parametrize(("cls", "p"), PARAMETERS)
def test_text_carries_every_parameter(cls, p):
    changed = cls(**{p.name: other_value(p)})
    assert f"{p.name}={other_value(p)!r}" in str(changed)
    assert changed != cls()
    if cls.public_name():
        assert (
            next(f for f in FAMILIES if issubclass(cls, f.base)).resolve(str(changed))
            == changed
        )


@pytest.mark.parametrize(("cls", "p"), PARAMETERS)
def test_refuses_bad_values_in_one_sentence(cls, p):
    sentence = (
        rf"^{cls.__name__}\({p.name}=.*\): {p.name} must be {re.escape(rule(p))}\.$"
    )
    bad = ["nope", -1, None, True, float("nan"), float("inf"), [], HUGE]
    if rule(p).startswith("int"):
        assert (
            getattr(cls(**{p.name: bad.pop()}), p.name) == HUGE
        )  # an integer of any size is valid
    for value in bad:
        with pytest.raises(ParameterError, match=sentence):
            cls(**{p.name: value})
    plain = (
        getattr(cls(**{p.name: np.asarray(p.default)[()]}), p.name)
        if not isinstance(p.default, str)
        else ""
    )
    assert type(plain) is type(p.default), "NumPy's scalars become plain values"


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.kind)
@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("nosuchthing", r"^Unknown \w+ 'nosuchthing'\. Known: .*\.$"),
        ("{name}(q=1)", r"has no parameter 'q'\. It takes: .*\.$"),
        ("{name}(k=", r"^Cannot read"),
        ("{name}(20)", r"^Cannot read"),
        ("{name}(**{{}})", r"(^Cannot read|has no parameter)"),
        ("{name}(k=f())", r"^Cannot read"),
        ("a.b(k=1)", r"^Cannot read"),
        ("", r"^Cannot read"),
        (3, r"^Cannot read 3 as"),
        (None, r"^Cannot read None as"),
        ("__import__('os')", r"^Cannot read"),
        ("(" * 10_000, r"^Cannot read .{60,70}\.\.\."),
        ("x" * 150, r"^Unknown"),
    ],
)
def test_bad_texts_get_one_sentence(family, spec, says):
    text = spec.format(name=family.names()[0]) if isinstance(spec, str) else spec
    with pytest.raises(ParameterError, match=says) as e:
        family.resolve(text)
    assert "\n" not in str(e.value)


def test_a_class_that_is_not_a_dataclass_is_refused():
    class Forgotten(type(Halve()).__base__):
        share: float = 0.5

        def apply(self, X, reference=None):
            return X * self.share

    with pytest.raises(
        ParameterError,
        match=r"^Forgotten: write @dataclass\(frozen=True, kw_only=True\) above the class",
    ):
        Forgotten()


def test_misspelt_names_get_a_suggestion():
    with pytest.raises(
        ParameterError,
        match=r"Unknown generator 'kmean'. Did you mean 'kmeans'\? Known: all, ",
    ):
        generators.family.resolve("kmean")


# Normalisers


@pytest.mark.parametrize("n", NORMALISERS, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_normaliser_is_pure_and_independent_of_other_rows_without_a_reference(
    n, dtype, awkward
):
    X = awkward[0].astype(dtype)
    before, reference = X.copy(), X[::-1][:20] * 3
    for ref in (None, reference):
        out = n.apply(X, ref)
        assert out.shape == X.shape
        assert out.dtype == dtype
        assert np.isfinite(out).all()
        assert np.array_equal(X, before)
        if not n.uses_reference or ref is None:
            assert np.array_equal(out, n.apply(X))
            assert np.array_equal(out, np.concatenate([n.apply(x[None]) for x in X]))


@pytest.mark.parametrize("n", NORMALISERS, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_graph_of_a_normaliser_equals_its_arithmetic(n, dtype, awkward):
    g, X = Graph(), awkward[0].astype(dtype)
    result = n.graph(g, "x", dtype)
    assert (n.use == "") <= np.array_equal(n.apply(X), X), (
        "a normaliser without a description must not change rows"
    )
    if result is not None:
        (output,) = run(g, {"x": X}, [result])
        np.testing.assert_allclose(output, n.apply(X), rtol=1e-5, atol=1e-6)
