"""What happened to a request, and the access log."""

import json
import re
import secrets
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from starlette.types import Scope

from imprint.core.errors import printable

MAX_LINE = 8192  # characters of a line of the log
MAX_PATH = 1000  # characters of an address in the log
FORMATS = ("text", "json", "none")
# the key of the record in the scope of a request
RECORD = "imprint.record"
# what a client, or a proxy in front of the server, may call a request
REQUEST_ID = re.compile(r"[A-Za-z0-9._:/+=-]{1,128}")
REQUEST_ID_HEADER = "x-request-id"


@dataclass
class RequestRecord:
    """One request, filled in while it is answered."""

    id: str
    method: str
    path: str
    client: str
    started: float  # on the clock of `time.perf_counter`
    endpoint: str = "(none)"  # the operation of the OpenAPI document
    model: str = ""
    version: str = ""
    status: int = 500
    inputs: int = 0
    received: int = 0  # bytes of the body
    prepared_seconds: float = 0.0  # decoding, of the slowest input
    waited_seconds: float = 0.0  # in the queue of the network, likewise
    network_seconds: float = 0.0  # of the slowest batch
    error: str = ""

    @classmethod
    def of(cls, scope: Scope) -> "RequestRecord":
        """The record of a request that has just arrived, with the id that the client
        states or a new one.
        """
        headers = {key.lower(): value for key, value in scope["headers"]}
        stated = headers.get(REQUEST_ID_HEADER.encode(), b"").decode("latin-1")
        address = scope.get("client") or ("", 0)
        return cls(
            id=stated if REQUEST_ID.fullmatch(stated) else secrets.token_hex(8),
            method=scope["method"],
            path=scope["path"][:MAX_PATH],
            client=address[0],
            started=time.perf_counter(),
        )

    def as_json(self, seconds: float) -> dict[str, Any]:
        """What the access log states, in JSON types; times are in milliseconds."""
        times = {
            "ms": seconds,
            "prepare_ms": self.prepared_seconds,
            "wait_ms": self.waited_seconds,
            "network_ms": self.network_seconds,
        }
        facts = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "id": self.id,
            "client": self.client,
            "method": self.method,
            "path": self.path,
            "status": self.status,
            **{name: round(1000 * value, 2) for name, value in times.items()},
            "bytes": self.received,
        }
        if self.model:
            facts |= {
                "model": self.model,
                "version": self.version,
                "inputs": self.inputs,
            }
        return facts | ({"error": self.error} if self.error else {})


class AccessLog:
    """Writes one line per request to standard error: `text`, `json` or `none`."""

    def __init__(self, format: str):
        self.format = format

    def write(self, record: RequestRecord, seconds: float) -> None:
        """Log an answered request."""
        if self.format == "none":
            return
        facts = record.as_json(seconds)
        if self.format == "text":
            first = ("time", "method", "path", "status")
            values = [str(facts.pop(name)) for name in first]
            others = [f"{name}={value}" for name, value in facts.items()]
            line = " ".join([*values, *others])
        else:
            line = json.dumps(facts, ensure_ascii=True)
        _write_line(line)

    def event(self, event: str, **facts: Any) -> None:
        """Log something other than a request, such as a model that was loaded; not
        silenced by `none`.
        """
        when = datetime.now(UTC).isoformat(timespec="milliseconds")
        if self.format == "json":
            _write_line(json.dumps({"time": when, "event": event, **facts}))
        else:
            shown = " ".join(f"{key}={value}" for key, value in facts.items())
            _write_line(f"{when} {event} {shown}")


def _write_line(line: str) -> None:
    # one call, so that lines of several threads do not mix
    sys.stderr.write(printable(line, MAX_LINE) + "\n")
    sys.stderr.flush()
