"""What comes with a request, read no further than its limit."""

import json
from typing import TYPE_CHECKING, Any

from imprint.core.errors import ImprintError, ParameterError

if TYPE_CHECKING:
    from starlette.requests import Request

MEGABYTE = 1 << 20
LARGEST = {"picture": 32 * MEGABYTE, "text": 256 * 1024, "change": MEGABYTE, "model": 512 * MEGABYTE}
"""Bytes that a request of each kind may carry."""


class TooLargeError(ImprintError):
    """A request carries more than it may."""


async def body(request: "Request", kind: str) -> bytes:
    """The whole body; refused as soon as it is longer than it may be."""
    limit = LARGEST[kind]
    stated = request.headers.get("content-length", "0")
    if not stated.isdigit() or int(stated) > limit:
        raise _too_large(kind)
    from starlette.requests import ClientDisconnect

    found = bytearray()
    try:
        async for part in request.stream():
            found += part
            if len(found) > limit:
                raise _too_large(kind)
    except ClientDisconnect:
        raise ParameterError("The request ended before all of it had come.") from None
    return bytes(found)


async def json_body(request: "Request", kind: str = "change") -> dict[str, Any]:
    """A JSON object."""
    try:
        found = json.loads(await body(request, kind))
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise ParameterError("The request must carry a JSON object.")
    return found


def number(request: "Request", name: str, usual: float, low: float, high: float) -> float:
    """A number among the parameters of the address."""
    try:
        value = float(request.query_params.get(name, usual))
    except ValueError:
        value = low - 1
    if not low <= value <= high:
        raise ParameterError(
            f"{name}={request.query_params.get(name)!r}: {name} must be a number from {low:g} to {high:g}."
        )
    return value


def _too_large(kind: str) -> TooLargeError:
    size = LARGEST[kind]
    words = f"{size // MEGABYTE} MB" if size >= MEGABYTE else f"{size // 1024} kB"
    return TooLargeError(f"A {kind} may have {words} at most.")
