"""Nodes and outputs added to an ONNX file without the package `onnx`.

An ONNX file is one Protocol Buffers message. A parser merges a message that follows
another one, and appends the elements of lists. So a model with further nodes at its end
is the file itself, followed by a few bytes; nothing has to be parsed or copied.
"""

from collections.abc import Iterator
from typing import TypeAlias

from imprint.core.arrays import Array

# Field numbers in onnx.proto; each name begins with that of the message.
MODEL_GRAPH = 7
GRAPH_NODE = 1
GRAPH_INITIALISER = 5
GRAPH_OUTPUT = 12
NODE_INPUT = 1
NODE_OUTPUT = 2
NODE_NAME = 3
NODE_OPERATOR = 4
NODE_ATTRIBUTE = 5
ATTRIBUTE_NAME = 1
ATTRIBUTE_INT = 3
ATTRIBUTE_INTS = 8
ATTRIBUTE_TYPE = 20
TENSOR_DIMENSIONS = 1
TENSOR_TYPE = 2
TENSOR_NAME = 8
TENSOR_BYTES = 9
VALUE_NAME = 1
# and their constants
TYPE_INT = 2
TYPE_INTS = 7
ELEMENT_FLOAT = 1
# kinds of fields in Protocol Buffers
VARINT = 0
EIGHT_BYTES = 1
DELIMITED = 2
FOUR_BYTES = 5

Node: TypeAlias = tuple[str, list[str]]
"""The operator of a node, and the tensors that it reads."""

PREFIX = "imprint/"  # of every name that is added


class Additions:
    """Nodes, constants and outputs; every call adds one and returns its name."""

    def __init__(self) -> None:
        self._fields: list[bytes] = []

    def node(self, operator: str, *inputs: str, **attributes: int | list[int]) -> str:
        """One operator with one output."""
        name = self._new_name(operator)
        fields = [_text(NODE_INPUT, key) for key in inputs]
        fields += [_text(NODE_OUTPUT, name), _text(NODE_NAME, name)]
        fields.append(_text(NODE_OPERATOR, operator))
        for key, value in attributes.items():
            fields.append(_delimited(NODE_ATTRIBUTE, _attribute(key, value)))
        self._fields.append(_delimited(GRAPH_NODE, b"".join(fields)))
        return name

    def constant(self, values: Array) -> str:
        """A stored array of float32."""
        name = self._new_name("constant")
        fields = [_number(TENSOR_DIMENSIONS, size) for size in values.shape]
        fields.append(_number(TENSOR_TYPE, ELEMENT_FLOAT))
        fields.append(_text(TENSOR_NAME, name))
        fields.append(_delimited(TENSOR_BYTES, values.astype("<f4").tobytes()))
        self._fields.append(_delimited(GRAPH_INITIALISER, b"".join(fields)))
        return name

    def output(self, name: str) -> str:
        """A tensor as one more output of the model."""
        self._fields.append(_delimited(GRAPH_OUTPUT, _text(VALUE_NAME, name)))
        return name

    def after(self, model: bytes) -> bytes:
        """The model, with what was added."""
        return model + _delimited(MODEL_GRAPH, b"".join(self._fields))

    def _new_name(self, kind: str) -> str:
        return f"{PREFIX}{kind}_{len(self._fields)}"


def tensor_names(model: bytes) -> list[str]:
    """The names of all tensors that the nodes of a model compute.

    Empty if the bytes are not a model.
    """
    names: list[str] = []
    try:
        for graph in _messages(model, MODEL_GRAPH):
            for node in _messages(graph, GRAPH_NODE):
                names += [str(name, "utf-8") for name in _messages(node, NODE_OUTPUT)]
    except (IndexError, ValueError):
        return []
    return names


def nodes_by_output(model: bytes) -> dict[str, Node]:
    """The operator and the inputs of each tensor that the nodes of a model compute."""
    nodes = {}
    for graph in _messages(model, MODEL_GRAPH):
        for node in _messages(graph, GRAPH_NODE):
            operator = _texts(node, NODE_OPERATOR)[0]
            inputs = _texts(node, NODE_INPUT)
            for output in _texts(node, NODE_OUTPUT):
                nodes[output] = (operator, inputs)
    return nodes


def _texts(
    content: memoryview,
    field: int,
) -> list[str]:
    messages = _messages(content, field)
    return [str(message, "utf-8") for message in messages]


def _messages(content: bytes | memoryview, field: int) -> Iterator[memoryview]:
    """The values of all delimited fields of one number."""
    view = memoryview(content)
    position = 0
    while position < len(view):
        key, position = _read_varint(view, position)
        kind = key & 7
        if kind == VARINT:
            _, position = _read_varint(view, position)
            continue
        if kind == DELIMITED:
            size, position = _read_varint(view, position)
        elif kind in (EIGHT_BYTES, FOUR_BYTES):
            size = 8 if kind == EIGHT_BYTES else 4
        else:
            raise ValueError
        if position + size > len(view):
            raise ValueError
        if kind == DELIMITED and key >> 3 == field:
            yield view[position : position + size]
        position += size


def _read_varint(view: memoryview, position: int) -> tuple[int, int]:
    """A number of seven bits per byte, the lowest first, and where it ends."""
    value = 0
    for shift in range(0, 64, 7):
        byte = view[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, position
    raise ValueError


def _attribute(name: str, value: int | list[int]) -> bytes:
    if isinstance(value, int):
        numbers = _number(ATTRIBUTE_INT, value)
        kind = TYPE_INT
    else:
        numbers = b"".join(_number(ATTRIBUTE_INTS, number) for number in value)
        kind = TYPE_INTS
    return _text(ATTRIBUTE_NAME, name) + numbers + _number(ATTRIBUTE_TYPE, kind)


def _varint(value: int) -> bytes:
    content = bytearray()
    while value > 127:
        content.append(value & 127 | 128)
        value >>= 7
    content.append(value)
    return bytes(content)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3 | VARINT) + _varint(value)


def _delimited(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | DELIMITED) + _varint(len(content)) + content


def _text(field: int, text: str) -> bytes:
    return _delimited(field, text.encode())
