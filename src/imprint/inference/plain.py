"""The plain endpoints for people: files, texts or JSON in, predictions out."""

import base64
import binascii
import re
from typing import Any

import numpy as np
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from imprint.core.errors import ParameterError, printable
from imprint.inference.batching import PredictOptions
from imprint.inference.endpoint import JSON, Endpoint, QueryParameter, Schema
from imprint.inference.reading import json_body, model_of, read_request
from imprint.inference.records import RequestRecord
from imprint.inference.repository import LoadedModel
from imprint.inference.service import Service
from imprint.modalities.embedding import check_width, matrix

MULTIPART, TEXT = "multipart/form-data", "text/plain"
BINARY = "application/octet-stream"
MAX_NAME = 200  # characters of the name of an input in answers and errors
BOUNDARY = re.compile(r'boundary=(?:"([^"]{1,70})"|([^\s;"]{1,70}))', re.IGNORECASE)
FILE_NAME = re.compile(rb'filename="((?:[^"\\]|\\.)*)"')
FIELD_NAME = re.compile(rb'(?<!file)name="((?:[^"\\]|\\.)*)"')
OPTIONS = (
    QueryParameter("top", "Number of classes in an answer. [default: 3]", int, 1, 1000),
    QueryParameter(
        "unknown", "p-value below which an input is none of the classes.", float, 0, 1
    ),
    QueryParameter("level", "Level of a tree of classes; 1 is the top.", int, 1, 100),
)
GUESS: Schema = {
    "type": "object",
    "properties": {"label": {}, "probability": {"type": "number"}},
    "required": ["label", "probability"],
}
PREDICTION: Schema = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "label": {"description": "The class; null: none of these."},
        "probability": {"type": "number"},
        "known": {"type": ["number", "null"]},
        "top": {"type": "array", "items": GUESS},
    },
    "required": ["path", "label", "probability", "known", "top"],
}
PREDICTIONS: Schema = {
    "type": "object",
    "properties": {
        "model": {"type": "string"},
        "version": {"type": "string"},
        "predictions": {"type": "array", "items": PREDICTION},
    },
    "required": ["model", "version", "predictions"],
}
MODEL: Schema = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "version": {"type": "string"},
        "sha256": {"type": "string"},
        "modality": {"type": "string"},
        "classes": {"type": "array"},
        "calibrated": {"type": "boolean"},
    },
    "required": ["name", "version", "sha256", "modality", "classes", "calibrated"],
}
ERRORS = (400, 404, 413, 415, 429, 503)


def endpoints(models: dict[str, LoadedModel]) -> list[Endpoint]:
    """The plain endpoints for some models."""
    shared: dict[str, Any] = {
        "answer": {JSON: PREDICTIONS},
        "query": OPTIONS,
        "body": _bodies(models),
        "errors": ERRORS,
    }
    return [
        Endpoint(
            *("GET", "/models", "models", "The models and their versions."),
            _models,
            {JSON: {"type": "array", "items": MODEL}},
        ),
        Endpoint(
            *("GET", "/models/{name}/card", "card", "The model card, as Markdown."),
            _card,
            {"text/markdown": {"type": "string"}},
        ),
        Endpoint(
            *("POST", "/models/{name}/predict", "predict", "Classify inputs."),
            _predict,
            **shared,
        ),
        Endpoint(
            *("POST", "/predict", "predict_default", "Classify inputs by the model."),
            _predict,
            **shared,
        ),
    ]


def _bodies(models: dict[str, LoadedModel]) -> dict[str, Schema]:
    """The media types that the models read, and what they hold."""
    kinds = {model.kind.name: model for model in models.values()}
    one_kind = len(kinds) == 1
    inputs = [_json_input(model, one_kind) for model in kinds.values()]
    item: Schema = inputs[0] if one_kind else {"anyOf": inputs}
    listed = {"type": "array", "minItems": 1, "items": item}
    bodies: dict[str, Schema] = {
        JSON: {
            "type": "object",
            "properties": {"inputs": listed},
            "required": ["inputs"],
        }
    }
    if any(model.kind.needs_backbone for model in kinds.values()):
        files = {"type": "array", "items": {"type": "string", "format": "binary"}}
        bodies[MULTIPART] = {"type": "object", "properties": {"file": files}}
        bodies[BINARY] = {"type": "string", "format": "binary"}
    if any(model.kind.typed for model in kinds.values()):
        bodies[TEXT] = {"type": "string", "minLength": 1}
    return bodies


def _json_input(model: LoadedModel, one_kind: bool) -> Schema:
    """One input in JSON: a text, a file as base64, or an embedding."""
    if model.kind.typed:
        return {"type": "string", "minLength": 1}
    if model.kind.needs_backbone:
        return {"type": "string", "contentEncoding": "base64"}
    width = {"minItems": model.width, "maxItems": model.width} if one_kind else {}
    return {"type": "array", "items": {"type": "number"}, **width}


def model_facts(model: LoadedModel) -> dict[str, Any]:
    """What identifies a model, in JSON types."""
    return {
        "name": model.name,
        "version": model.version,
        "sha256": model.sha256,
        "modality": model.kind.name,
        "classes": model.classes,
        "calibrated": model.head.calibrated,
    }


async def _models(service: Service, request: Request, _: RequestRecord) -> Response:
    models = service.repository.models.values()
    return JSONResponse([model_facts(model) for model in models])


async def _card(service: Service, request: Request, record: RequestRecord) -> Response:
    model = model_of(service, request, record)
    card = model.imprinter.card().markdown(model.path.name)
    return PlainTextResponse(card, media_type="text/markdown")


async def _predict(
    service: Service, request: Request, record: RequestRecord
) -> Response:
    model = model_of(service, request, record)
    stated = {parameter.name: parameter.read(request) for parameter in OPTIONS}
    chosen = {name: value for name, value in stated.items() if value is not None}
    options: PredictOptions = service.options._replace(**chosen)
    async with read_request(service, request, record) as content:
        inputs = _inputs(model, request, content)
        del content
        answers = await service.predict(record, model, inputs, options)
    return JSONResponse(
        {
            "model": model.name,
            "version": model.version,
            "predictions": [answer.prediction for answer in answers],
        }
    )


def _inputs(
    model: LoadedModel, request: Request, content: bytes
) -> list[tuple[str, Any]]:
    """The named inputs in the body of a request, by its media type."""
    stated = request.headers.get("content-type", BINARY)
    media_type = stated.partition(";")[0].strip().lower()
    if media_type == JSON:
        return _json_inputs(model, json_body(content))
    if not model.kind.needs_backbone:
        raise HTTPException(415, f"{model.name} reads embeddings: send {JSON}.")
    if media_type == MULTIPART:
        return [
            (name, _of_file(model, raw, is_field))
            for name, raw, is_field in multipart_inputs(stated, content)
        ]
    if model.kind.typed != (media_type == TEXT):
        expected = TEXT if model.kind.typed else f"an {model.kind.name} file"
        raise HTTPException(
            415,
            f"{model.name} reads {model.kind.plural}: send {JSON}, {MULTIPART} or"
            f" {expected}, not {printable(media_type, 60)}.",
        )
    stated_name = request.query_params.get("name", "")
    name = printable(stated_name, MAX_NAME) or f"{model.kind.noun} 1"
    return [
        (name or f"{model.kind.noun} 1", _of_file(model, content, model.kind.typed))
    ]


def _of_file(model: LoadedModel, raw: bytes, is_text: bool) -> Any:
    """The content of a file, or of a form's field that holds a text."""
    if not (model.kind.typed and is_text):
        return raw
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise ParameterError("A text is not UTF-8.") from None


def _json_inputs(model: LoadedModel, document: Any) -> list[tuple[str, Any]]:
    values = document.get("inputs")
    if not isinstance(values, list) or not values:
        raise ParameterError("inputs: the request must have a list of inputs.")
    kind = model.kind
    names = [f"{kind.noun} {i + 1}" for i in range(len(values))]
    if not kind.needs_backbone:
        return list(zip(names, embeddings(model, values), strict=True))
    items: list[Any] = []
    for name, value in zip(names, values, strict=True):
        if not isinstance(value, str):
            what = "a text" if kind.typed else "base64 of a file"
            raise ParameterError(f"{name}: an input must be {what}.")
        items.append(value if kind.typed else _decoded(name, value))
    return list(zip(names, items, strict=True))


def embeddings(model: LoadedModel, values: Any) -> Any:
    """Rows of numbers as embeddings for a model."""
    if isinstance(values, list) and any(
        not isinstance(number, int | float) or isinstance(number, bool)
        for row in values
        for number in (row if isinstance(row, list) else [None])
    ):
        raise ParameterError("inputs: embeddings must be lists of numbers.")
    X = matrix(values, np.float64 if isinstance(values, list) else None)
    check_width(X, model.width)
    return matrix(X, model.head.imprinted.dtype)


def _decoded(name: str, text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ParameterError(f"{name}: an input must be base64 of a file.") from None


def multipart_inputs(content_type: str, body: bytes) -> list[tuple[str, bytes, bool]]:
    """The parts of a form: their names, contents, and whether they are fields rather
    than files.
    """
    match = BOUNDARY.search(content_type)
    if match is None:
        raise ParameterError("The form has no boundary in its Content-Type.")
    boundary = match[1] or match[2]
    parts = (b"\r\n" + body).split(b"\r\n--" + boundary.encode("latin-1"))
    if len(parts) < 2 or not parts[-1].startswith(b"--"):
        raise ParameterError("The form ends before its closing boundary.")
    inputs = []
    for number, part in enumerate(parts[1:-1], 1):
        header, separator, content = part.partition(b"\r\n\r\n")
        if not separator:
            raise ParameterError(f"Part {number} of the form has no header.")
        file_name = FILE_NAME.search(header)
        name = file_name or FIELD_NAME.search(header)
        shown = name[1].decode("utf-8", "replace") if name else ""
        shown = printable(shown, MAX_NAME) or f"part {number}"
        inputs.append((shown, content, file_name is None))
    return inputs
