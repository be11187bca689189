"""The body of a request, within limits of size and time."""

import asyncio

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

from imprint.core.errors import ParameterError

IDLE_SECONDS = 10.0  # seconds without data after which an upload is aborted
# bytes per second at which the largest body of its kind arrives in time
MIN_RATE = 256 << 10


async def read_body(request: Request, limit: int, too_large: str) -> bytes:
    """The complete body; refused as soon as it is too large, stalls, or is so slow that
    it would occupy its place.

    Parameters
    ----------
    request : Request
    limit : int
        Maximum number of bytes.
    too_large : str
        The sentence for a larger body.
    """
    stated = request.headers.get("content-length", "0")
    if not stated.isdecimal() or int(stated) > limit:
        raise HTTPException(413, too_large)
    content = bytearray()
    parts = request.stream()
    try:
        async with asyncio.timeout(IDLE_SECONDS + limit / MIN_RATE):
            while (
                part := await asyncio.wait_for(anext(parts, None), IDLE_SECONDS)
            ) is not None:
                content += part
                if len(content) > limit:
                    raise HTTPException(413, too_large)
    except TimeoutError:
        raise HTTPException(
            503, f"The upload stalled after {len(content):,} bytes; send it again."
        ) from None
    except ClientDisconnect:
        raise ParameterError(
            "The connection was closed before the request was complete."
        ) from None
    return bytes(content)
