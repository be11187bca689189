"""Tensors of the Open Inference Protocol, as JSON and as its binary extension."""

import base64
import binascii
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from imprint.core.arrays import Array
from imprint.core.errors import ParameterError

DATATYPES: dict[str, Any] = {
    "BOOL": np.bool_,
    "UINT8": np.uint8,
    "UINT16": np.uint16,
    "UINT32": np.uint32,
    "UINT64": np.uint64,
    "INT8": np.int8,
    "INT16": np.int16,
    "INT32": np.int32,
    "INT64": np.int64,
    "FP16": np.float16,
    "FP32": np.float32,
    "FP64": np.float64,
}
"""The numeric data types of the protocol, which are little-endian."""
BYTES = "BYTES"
BINARY_SIZE = "binary_data_size"
LENGTH_BYTES = 4  # before each element of a binary BYTES tensor
BOOLEAN, NUMERIC = "b", "biuf"  # kinds of NumPy


class Tensor(NamedTuple):
    """One tensor. `values` are an array of its shape or, for BYTES, a list of
    `bytes`.
    """

    name: str
    datatype: str
    shape: tuple[int, ...]
    values: Any


def read_tensors(
    document: Mapping[str, Any], binary: bytes, plain: bool
) -> list[Tensor]:
    """The input tensors of a request, whose binary values follow each other in
    `binary`.

    In JSON, an element of a BYTES tensor is a text if `plain`, and base64 otherwise.
    """
    stated = document.get("inputs")
    if not isinstance(stated, list) or not stated:
        raise ParameterError("inputs: the request must have a list of input tensors.")
    tensors, offset = list[Tensor](), 0
    for entry in stated:
        name, datatype, shape, parameters = _stated(entry)
        size = parameters.get(BINARY_SIZE)
        if size is None:
            is_base64 = parameters.get("content_type") == "base64" or not plain
            values = _from_json(name, datatype, shape, entry.get("data"), is_base64)
        else:
            part = _part(name, binary, offset, size)
            values = _from_binary(name, datatype, shape, part)
            offset += len(part)
        tensors.append(Tensor(name, datatype, shape, values))
    if offset != len(binary):
        raise ParameterError(
            f"The request has {len(binary):,} bytes of binary data; its tensors state"
            f" {offset:,}."
        )
    return tensors


def _stated(entry: Any) -> tuple[str, str, tuple[int, ...], dict[str, Any]]:
    """The name, data type, shape and parameters that a tensor states."""
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
        raise ParameterError("inputs: each tensor must be an object with a name.")
    name, datatype, shape = entry["name"], entry.get("datatype"), entry.get("shape")
    if not isinstance(datatype, str) or datatype not in (BYTES, *DATATYPES):
        known = ", ".join((BYTES, *DATATYPES))
        raise ParameterError(f"{name}: datatype={datatype!r} must be one of {known}.")
    is_shape = isinstance(shape, list) and all(
        isinstance(side, int) and not isinstance(side, bool) and side >= 0
        for side in shape
    )
    if not is_shape or not shape:
        raise ParameterError(f"{name}: shape must be a list of integers >= 0.")
    parameters = entry.get("parameters", {})
    if not isinstance(parameters, dict):
        raise ParameterError(f"{name}: parameters must be an object.")
    return name, datatype, tuple(shape), parameters


def _part(name: str, binary: bytes, offset: int, size: Any) -> bytes:
    is_size = isinstance(size, int) and not isinstance(size, bool) and size >= 0
    if not is_size or offset + size > len(binary):
        raise ParameterError(
            f"{name}: {BINARY_SIZE}={size!r} must be the number of its bytes in the"
            " binary data."
        )
    return binary[offset : offset + size]


def _check_count(name: str, shape: Sequence[int], count: int) -> None:
    if math.prod(shape) != count:
        raise ParameterError(
            f"{name}: {count:,} elements do not have the shape {list(shape)}."
        )


def _from_json(
    name: str, datatype: str, shape: tuple[int, ...], data: Any, is_base64: bool
) -> Any:
    if not isinstance(data, list):
        raise ParameterError(f"{name}: data must be a list.")
    if datatype == BYTES:
        elements = list(_flat(data))
        _check_count(name, shape, len(elements))
        return [_element(name, one, is_base64) for one in elements]
    try:
        values = np.array(data) if data else np.empty(0)
    except (ValueError, OverflowError):
        raise ParameterError(f"{name}: data must be numbers.") from None
    _check_count(name, shape, values.size)
    dtype = np.dtype(DATATYPES[datatype])
    if values.size and not _fits(values, dtype):
        raise ParameterError(f"{name}: data has elements that are not {datatype}.")
    return values.astype(dtype).reshape(shape)


def _fits(values: Array, dtype: Any) -> bool:
    """Whether all values are of a data type; floats may be rounded, but not become
    infinite.
    """
    if dtype.kind == BOOLEAN or values.dtype.kind == BOOLEAN:
        return bool(dtype.kind == values.dtype.kind)
    if dtype.kind == "f":
        return values.dtype.kind in "iuf" and bool(
            (np.abs(values.astype(np.float64)) <= np.finfo(dtype).max).all()
        )
    limits = np.iinfo(dtype)
    return values.dtype.kind in "iu" and bool(
        values.min() >= limits.min and values.max() <= limits.max
    )


def _flat(data: list[Any]) -> Iterator[Any]:
    """The elements of nested lists, in order."""
    for one in data:
        if isinstance(one, list):
            yield from _flat(one)
        else:
            yield one


def _element(name: str, value: Any, is_base64: bool) -> bytes:
    if not isinstance(value, str):
        raise ParameterError(f"{name}: the elements of a BYTES tensor must be texts.")
    try:
        return base64.b64decode(value, validate=True) if is_base64 else value.encode()
    except (binascii.Error, ValueError):  # ValueError: half of a character
        rule = "base64" if is_base64 else "whole Unicode"
        raise ParameterError(f"{name}: an element is not {rule}.") from None


def _from_binary(name: str, datatype: str, shape: tuple[int, ...], raw: bytes) -> Any:
    if datatype == BYTES:
        elements = list(_length_prefixed(name, raw))
        _check_count(name, shape, len(elements))
        return elements
    dtype = np.dtype(DATATYPES[datatype]).newbyteorder("<")
    if len(raw) != math.prod(shape) * dtype.itemsize:
        raise ParameterError(
            f"{name}: {len(raw):,} bytes are not {datatype} of shape {list(shape)}."
        )
    return np.frombuffer(raw, dtype).reshape(shape)


def _length_prefixed(name: str, raw: bytes) -> Iterator[bytes]:
    position = 0
    while position < len(raw):
        start = position + LENGTH_BYTES
        end = start + int.from_bytes(raw[position:start], "little")
        if end > len(raw):
            raise ParameterError(f"{name}: its binary data ends within an element.")
        yield raw[start:end]
        position = end


def write_json(tensor: Tensor) -> dict[str, Any]:
    """A tensor with its values in JSON."""
    values = (
        [one.decode() for one in tensor.values]
        if tensor.datatype == BYTES
        else tensor.values.ravel().tolist()
    )
    return {**_header(tensor), "data": values}


def write_binary(tensor: Tensor) -> tuple[dict[str, Any], bytes]:
    """A tensor without values in JSON, and its values in binary."""
    if tensor.datatype == BYTES:
        raw = b"".join(
            len(one).to_bytes(LENGTH_BYTES, "little") + one for one in tensor.values
        )
    else:
        little_endian = np.dtype(DATATYPES[tensor.datatype]).newbyteorder("<")
        raw = np.ascontiguousarray(tensor.values, little_endian).tobytes()
    return {**_header(tensor), "parameters": {BINARY_SIZE: len(raw)}}, raw


def _header(tensor: Tensor) -> dict[str, Any]:
    return {
        "name": tensor.name,
        "datatype": tensor.datatype,
        "shape": list(tensor.shape),
    }
