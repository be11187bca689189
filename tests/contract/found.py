"""The components that contract tests try: every built-in one, and minimal ones from outside."""

from dataclasses import fields

import pytest

from imprint import aggregators, generators, normalisers
from imprint.export.onnx import element
from tests.contract.minimal import Closest, Corners, Halve

FAMILIES = [generators.family, normalisers.family, aggregators.family]
BUILTIN = [(f, f.load(n)) for f in FAMILIES for n in f.builtin()]
MINIMAL = [(generators.family, Corners), (normalisers.family, Halve), (aggregators.family, Closest)]


def named(pairs):
    return [pytest.param(f, cls, id=f"{f.kind}:{cls.__name__}") for f, cls in pairs]


def other_value(p):
    """Some legal value that is not the default."""
    if p.metadata["choices"]:
        return next(c for c in p.metadata["choices"] if c != p.default)
    return p.default * 2


def variants(family):
    """Every component by default, and with each parameter changed."""
    found = [cls for f, cls in [*BUILTIN, *MINIMAL] if f is family]
    return [c for cls in found for c in (cls(), *(cls(**{p.name: other_value(p)}) for p in fields(cls)))]


PARAMETERS = [
    pytest.param(cls, p, id=f"{cls.__name__}.{p.name}") for _, cls in [*BUILTIN, *MINIMAL] for p in fields(cls)
]
GENERATORS = variants(generators.family)
NORMALISERS = variants(normalisers.family)
AGGREGATORS = variants(aggregators.family)


def run(g, inputs, names):
    """What ONNX Runtime makes of the nodes of a graph."""
    import onnxruntime
    from onnx import helper

    given = [helper.make_tensor_value_info(k, element(v.dtype), ["n", *v.shape[1:]]) for k, v in inputs.items()]
    dtype = element(next(iter(inputs.values())).dtype)
    for i, name in enumerate(names):
        g.add("Identity", name, result=f"out{i}")
    made = [helper.make_tensor_value_info(f"out{i}", dtype, None) for i in range(len(names))]
    whole = helper.make_graph(g.nodes, "g", given, made, initializer=g.constants)
    model = helper.make_model(whole, opset_imports=[helper.make_opsetid("", g.opset)], ir_version=8)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, inputs)
