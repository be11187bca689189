"""The components under contract tests: all built-in ones, and minimal ones defined outside of the package."""

from dataclasses import fields

import pytest
from tests.contract.minimal import Closest, Corners, Halve

from imprint import aggregators, generators, normalisers
from imprint.export.onnx import element

FAMILIES = [generators.family, normalisers.family, aggregators.family]
BUILTIN = [(f, f.load(n)) for f in FAMILIES for n in f.builtin()]
MINIMAL = [
    (generators.family, Corners),
    (normalisers.family, Halve),
    (aggregators.family, Closest),
]


def named(pairs):
    return [pytest.param(f, cls, id=f"{f.kind}:{cls.__name__}") for f, cls in pairs]


# values of parameters that are neither a number nor one of a few names
OTHERS = {"weights": (1.0,), "shrinkage": "none", "k": 3}


def other_value(p):
    """A valid value other than the default."""
    if p.metadata["read"]:
        return OTHERS[p.name]
    if p.metadata["choices"]:
        return next(c for c in p.metadata["choices"] if c != p.default)
    return p.default * 2


def variants(family):
    """Every component with its defaults, and with each parameter changed."""
    classes = [cls for f, cls in [*BUILTIN, *MINIMAL] if f is family]
    return [
        c
        for cls in classes
        for c in (cls(), *(cls(**{p.name: other_value(p)}) for p in fields(cls)))
    ]


PARAMETERS = [
    pytest.param(cls, p, id=f"{cls.__name__}.{p.name}")
    for _, cls in [*BUILTIN, *MINIMAL]
    for p in fields(cls)
]
GENERATORS = variants(generators.family)
NORMALISERS = variants(normalisers.family)
AGGREGATORS = variants(aggregators.family)


def run(g, inputs, names):
    """Run a graph in ONNX Runtime and return its named outputs."""
    import onnxruntime
    from onnx import helper

    given = [
        helper.make_tensor_value_info(k, element(v.dtype), ["n", *v.shape[1:]])
        for k, v in inputs.items()
    ]
    dtype = element(next(iter(inputs.values())).dtype)
    for i, name in enumerate(names):
        g.add("Identity", name, result=f"out{i}")
    outputs = [
        helper.make_tensor_value_info(f"out{i}", dtype, None) for i in range(len(names))
    ]
    graph = helper.make_graph(g.nodes, "g", given, outputs, initializer=g.constants)
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", g.opset)], ir_version=8
    )
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, inputs)
