"""Opens addresses: by HTTP and HTTPS alone, and for no longer than a deadline, whatever the other side does."""

import http.client
import io
import time
import urllib.request
from collections.abc import Callable
from functools import partial
from typing import Any


class AddressError(Exception):
    """An address, perhaps one that another led to, that cannot be one."""


class TooLateError(Exception):
    """The deadline has passed."""


def open_address(url: str, headers: dict[str, str], timeout: float, deadline: float) -> Any:
    """The answer of an address. No read, of a header or of the body, waits after the deadline (`time.monotonic`)."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        _Http(deadline),
        _Https(deadline),
        _Redirects(),
        urllib.request.HTTPErrorProcessor(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.UnknownHandler(),
    ):
        opener.add_handler(handler)
    try:
        return opener.open(urllib.request.Request(url, headers=headers), timeout=timeout)
    except http.client.HTTPException:
        raise
    except ValueError as e:  # what urllib and the codecs of names say of an address that is none
        raise AddressError(str(e)) from None


class _Limited(io.RawIOBase):
    """What comes from a connection until the deadline."""

    def __init__(self, connection: Any, deadline: float) -> None:
        self._connection, self._deadline = connection, deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        if time.monotonic() > self._deadline:
            raise TooLateError
        found: int | None = self._connection.readinto(buffer)
        return found

    def close(self) -> None:
        self._connection.close()
        super().close()


class _Answer(http.client.HTTPResponse):
    def __init__(self, *args: Any, deadline: float, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fp = io.BufferedReader(_Limited(self.fp.detach(), deadline))


def _connection(kind: Callable[..., Any], deadline: float) -> Any:
    """What makes connections whose answers end with the deadline."""

    def connect(host: str, **options: Any) -> Any:
        made = kind(host, **options)
        made.response_class = partial(_Answer, deadline=deadline)
        return made

    return connect


class _Http(urllib.request.HTTPHandler):
    def __init__(self, deadline: float) -> None:
        super().__init__()
        self._deadline = deadline

    def http_open(self, req: urllib.request.Request) -> Any:
        return self.do_open(_connection(http.client.HTTPConnection, self._deadline), req)


class _Https(urllib.request.HTTPSHandler):
    def __init__(self, deadline: float) -> None:
        super().__init__()
        self._deadline = deadline

    def https_open(self, req: urllib.request.Request) -> Any:
        return self.do_open(_connection(http.client.HTTPSConnection, self._deadline), req)


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Goes where an answer leads to, without its body: urllib would read that to its end, and it may have none."""

    def redirect_request(self, req: Any, fp: Any, *rest: Any) -> Any:
        fp.close()
        return super().redirect_request(req, fp, *rest)
