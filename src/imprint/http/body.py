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
    clock = asyncio.get_running_loop().time
    latest = clock() + IDLE_SECONDS + limit / MIN_RATE
    try:
        # one timer that is moved: a timer for each part takes longer than the part
        async with asyncio.timeout_at(None) as deadline:
            deadline.reschedule(min(latest, clock() + IDLE_SECONDS))
            async for part in request.stream():
                content += part
                if len(content) > limit:
                    raise HTTPException(413, too_large)
                deadline.reschedule(min(latest, clock() + IDLE_SECONDS))
    except TimeoutError:
        raise HTTPException(
            503, f"The upload stalled after {len(content):,} bytes; send it again."
        ) from None
    except ClientDisconnect:
        raise ParameterError(
            "The connection was closed before the request was complete."
        ) from None
    return bytes(content)
