"""An endpoint: the route, its handler and its part of the OpenAPI document in one
value.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from imprint.core.errors import ParameterError
from imprint.inference.records import RequestRecord
from imprint.inference.service import Service

Schema = Mapping[str, Any]
Handler = Callable[[Service, Request, RequestRecord], Awaitable[Response]]
JSON = "application/json"


@dataclass(frozen=True)
class QueryParameter:
    """A number in the address, with its limits."""

    name: str
    meaning: str
    type: type[int] | type[float]
    low: float
    high: float

    def read(self, request: Request) -> Any:
        """The value that a request states; None if it states none."""
        text = request.query_params.get(self.name)
        if text is None:
            return None
        try:
            value = self.type(text)
        except ValueError:
            value = None
        # not a number is neither smaller nor larger
        if value is None or not self.low <= value <= self.high:
            kind = "an integer" if self.type is int else "a number"
            raise ParameterError(
                f"{self.name}={text!r}: {self.name} must be {kind} from {self.low:g} to"
                f" {self.high:g}."
            )
        return value

    def openapi(self) -> Schema:
        """The parameter in the OpenAPI document."""
        return {
            "name": self.name,
            "in": "query",
            "required": False,
            "description": self.meaning,
            "schema": {
                "type": "integer" if self.type is int else "number",
                "minimum": self.low,
                "maximum": self.high,
            },
        }


@dataclass(frozen=True)
class Endpoint:
    """One method at one path.

    Parameters
    ----------
    method, path : str
        The path in the notation of OpenAPI, which is also that of Starlette.
    operation : str
        A short unique name: the `operationId`, and the label in metrics.
    summary : str
        What it does, in one sentence.
    handle : callable
        Takes the service, the request and its record; returns the response.
    answer : mapping
        The media types of a successful answer, and their schemas.
    query : tuple of QueryParameter
    body : mapping, optional
        The media types that a request may carry, and their schemas.
    errors : tuple of int
        The statuses of errors besides 401, 404 and 405.
    public : bool
        Whether it needs no token.
    """

    method: str
    path: str
    operation: str
    summary: str
    handle: Handler
    answer: Mapping[str, Schema]
    query: tuple[QueryParameter, ...] = ()
    body: Mapping[str, Schema] | None = None
    errors: tuple[int, ...] = ()
    public: bool = False
