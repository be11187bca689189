"""What all endpoints read of a request: the model, the body, JSON."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request

from imprint.core.errors import ParameterError, printable
from imprint.http.body import read_body
from imprint.inference.records import RequestRecord
from imprint.inference.repository import LoadedModel
from imprint.inference.service import Service


def model_of(service: Service, request: Request, record: RequestRecord) -> LoadedModel:
    """The model that the address names; the only one if it names none."""
    models = service.repository.models
    name = request.path_params.get("name")
    if name is None and len(models) > 1:
        names = ", ".join(sorted(models))
        raise HTTPException(
            404, f"Name a model: POST /models/NAME/predict. The models are {names}."
        )
    model = next(iter(models.values())) if name is None else models.get(name)
    if model is None:
        raise HTTPException(404, f"There is no model {printable(name, 60)!r}.")
    stated = request.path_params.get("version")
    if stated not in (None, model.version):
        raise HTTPException(
            404,
            f"The version of {model.name} is {model.version}, not"
            f" {printable(stated, 60)!r}.",
        )
    record.model = model.name
    record.version = model.version
    return model


@asynccontextmanager
async def read_request(
    service: Service, request: Request, record: RequestRecord
) -> AsyncIterator[bytes]:
    """The body of a request, which counts among the waiting bytes until the block
    ends.
    """
    encoding = request.headers.get("content-encoding", "identity")
    if encoding != "identity":
        raise HTTPException(415, "Compressed bodies are not read.")
    limit = service.limits.body
    stated = request.headers.get("content-length", "")
    # a body whose length is not stated may be as long as the limit
    size = min(int(stated), limit) if stated.isdecimal() else limit
    with service.admission.room(size=size):
        shown = f"{limit >> 20} MB" if limit >> 20 else f"{limit:,} bytes"
        content = await read_body(
            request, limit, f"The request is too large: the maximum is {shown}."
        )
        record.received = len(content)
        yield content


def json_body(content: bytes) -> dict[str, Any]:
    """The JSON object that a body holds."""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise ParameterError("The request must carry a JSON object.")
    return value
