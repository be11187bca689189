"""Limits of size, time and queue, and the errors for requests beyond them."""

import math
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from imprint.core.errors import ImprintError

# Answers whose times estimate how long the queue takes; enough for a second or more of
# a busy server.
REMEMBERED_ANSWERS = 256
# Seconds. A client should come back within a minute, since estimates of longer times
# are unreliable.
MAX_RETRY_AFTER = 60


@dataclass(frozen=True)
class Limits:
    """What one request, and all waiting requests together, may take.

    Parameters
    ----------
    body : int
        Maximum number of bytes in the body of a request.
    pixels : int
        Maximum number of pixels of an image.
    inputs : int
        Maximum number of inputs in one request.
    queue : int
        Maximum number of inputs that wait or are being answered.
    queue_bytes : int
        Maximum number of bytes in the bodies of the requests that wait. The default
        leaves half of a container of 512 MB to the process itself.
    seconds : float
        Time after which a request is answered with an error.
    """

    body: int = 32 << 20
    pixels: int = 1 << 25
    inputs: int = 256
    queue: int = 1024
    queue_bytes: int = 128 << 20
    seconds: float = 60.0


class TooLargeError(ImprintError):
    """A request is larger than a limit; sending it again does not help. HTTP 413."""


class BusyError(ImprintError):
    """A request cannot be answered now, but later.

    `status` is 429 for a full queue, and 503 for a server that is not ready or too
    slow.
    """

    def __init__(self, sentence: str, status: int, retry_after: int):
        super().__init__(sentence)
        self.status = status
        self.retry_after = retry_after


class Admission:
    """Counts the inputs and bytes of the requests that are being answered, and refuses
    those for which there is no room. Used on the event loop only.
    """

    def __init__(self, limits: Limits):
        self.limits = limits
        self.inputs = 0
        self.bytes = 0
        self._answered: deque[float] = deque(maxlen=REMEMBERED_ANSWERS)

    @contextmanager
    def room(self, inputs: int = 0, size: int = 0) -> Iterator[None]:
        """Room in the queue for a number of inputs and of bytes, until the block
        ends.
        """
        limits = self.limits
        full = self.inputs + inputs > limits.queue
        if full or self.bytes + size > max(limits.queue_bytes, limits.body):
            raise BusyError(
                f"The queue is full ({self.inputs:,} inputs); try again later.",
                429,
                self.retry_after(),
            )
        self.inputs += inputs
        self.bytes += size
        try:
            yield
        finally:
            self.inputs -= inputs
            self.bytes -= size
            self._answered.extend([time.monotonic()] * min(inputs, REMEMBERED_ANSWERS))

    def retry_after(self) -> int:
        """Seconds until the queue is probably empty, from the rate of the last
        answers.
        """
        if len(self._answered) < 2:
            return 1
        duration = time.monotonic() - self._answered[0]
        seconds = self.inputs * duration / len(self._answered)
        return min(MAX_RETRY_AFTER, max(1, math.ceil(seconds)))
