"""The OpenAPI document, generated from the endpoints."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from imprint.core import __version__
from imprint.inference.endpoint import JSON, Endpoint

OPENAPI_VERSION = "3.1.0"
TOKEN_SCHEME = "token"
ERRORS = {
    400: "The request is invalid.",
    401: "The token is missing or wrong.",
    404: "There is no such model, version or address.",
    413: "The request is larger than a limit.",
    415: "The body has a media type or an encoding that is not read.",
    429: "The queue is full.",
    503: "The server is not ready or too slow.",
}
"""Statuses of errors, and what they mean."""
RETRY_STATUSES = (429, 503)
ERROR_SCHEMA = {
    "type": "object",
    "properties": {"error": {"type": "string"}},
    "required": ["error"],
}


def document(
    endpoints: Sequence[Endpoint],
    models: Mapping[str, Sequence[str]],
    needs_token: bool,
) -> dict[str, Any]:
    """The document for some endpoints.

    Parameters
    ----------
    endpoints : sequence of Endpoint
    models : mapping from str to sequence of str
        The names of the models and their loaded versions.
    needs_token : bool
        Whether clients send a token.
    """
    paths: dict[str, Any] = {}
    for endpoint in endpoints:
        operation = _operation(endpoint, models, needs_token)
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = operation
    described: dict[str, Any] = {
        "openapi": OPENAPI_VERSION,
        "info": {
            "title": "imprint api",
            "version": __version__,
            "description": (
                "Predictions of imprinted models: the Open Inference Protocol, version"
                " 2, below /v2, and plain endpoints next to it."
            ),
        },
        "paths": paths,
        "components": {"schemas": {"Error": ERROR_SCHEMA}},
    }
    if needs_token:
        scheme = {"type": "http", "scheme": "bearer"}
        described["components"]["securitySchemes"] = {TOKEN_SCHEME: scheme}
    return described


def _operation(
    endpoint: Endpoint, models: Mapping[str, Sequence[str]], needs_token: bool
) -> dict[str, Any]:
    statuses = set(endpoint.errors)
    named = re.findall(r"{(\w+)}", endpoint.path)
    if named:
        statuses.add(404)
    if needs_token and not endpoint.public:
        statuses.add(401)
    answer = {
        "description": "The answer.",
        "content": _content(endpoint.answer),
    }
    responses = {"200": answer}
    for status in sorted(statuses):
        responses[str(status)] = _error(status)
    operation: dict[str, Any] = {
        "operationId": endpoint.operation,
        "summary": endpoint.summary,
        "parameters": [
            *(_path_parameter(name, models) for name in named),
            *(parameter.openapi() for parameter in endpoint.query),
        ],
        "responses": responses,
    }
    if endpoint.body is not None:
        operation["requestBody"] = {
            "required": True,
            "content": _content(endpoint.body),
        }
    if needs_token and not endpoint.public:
        operation["security"] = [{TOKEN_SCHEME: []}]
    return operation


def _path_parameter(name: str, models: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    versions = sorted({version for loaded in models.values() for version in loaded})
    values = sorted(models) if name == "name" else versions
    return {
        "name": name,
        "in": "path",
        "required": True,
        "schema": {"type": "string", "enum": values},
    }


def _content(schemas: Mapping[str, Any]) -> dict[str, Any]:
    return {media_type: {"schema": schema} for media_type, schema in schemas.items()}


def _error(status: int) -> dict[str, Any]:
    reference = {"$ref": "#/components/schemas/Error"}
    described: dict[str, Any] = {
        "description": ERRORS[status],
        "content": _content({JSON: reference}),
    }
    if status in RETRY_STATUSES:
        described["headers"] = {
            "Retry-After": {
                "description": "Seconds after which to try again.",
                "schema": {"type": "integer"},
            }
        }
    return described
