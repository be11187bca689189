"""The Open Inference Protocol, version 2, as KServe and Triton speak it, with the
binary tensor extension.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from imprint.core import __version__
from imprint.core.errors import ParameterError, printable, unknown
from imprint.inference.batching import Answer, PredictOptions
from imprint.inference.endpoint import JSON, Endpoint, Schema
from imprint.inference.limits import BusyError
from imprint.inference.plain import BINARY, embeddings, model_facts
from imprint.inference.reading import json_body, model_of, read_request
from imprint.inference.records import RequestRecord
from imprint.inference.repository import LoadedModel
from imprint.inference.service import Service
from imprint.inference.tensors import (
    BYTES,
    DATATYPES,
    Tensor,
    read_tensors,
    write_binary,
    write_json,
)

INPUT = "inputs"  # the name of the only input tensor
LABEL, PROBABILITY, KNOWN, PROBABILITIES = (
    *("label", "probability", "known"),
    "probabilities",
)
# of the JSON before the binary data, in requests and answers with binary tensors
HEADER_LENGTH = "inference-header-content-length"
EXTENSIONS = ["binary_tensor_data", "model_repository"]
TENSOR: Schema = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "datatype": {"type": "string", "enum": [BYTES, *DATATYPES]},
        "shape": {"type": "array", "items": {"type": "integer"}, "minItems": 1},
        "parameters": {"type": "object"},
        "data": {"type": "array"},
    },
    "required": ["name", "datatype", "shape"],
}
REQUESTED: Schema = {
    "type": "object",
    "properties": {
        "name": {
            "type": "string",
            "enum": [LABEL, PROBABILITY, KNOWN, PROBABILITIES],
        },
        "parameters": {"type": "object"},
    },
    "required": ["name"],
}
REQUEST: Schema = {
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "parameters": {"type": "object"},
        "inputs": {"type": "array", "items": TENSOR, "minItems": 1, "maxItems": 1},
        "outputs": {"type": "array", "items": REQUESTED},
    },
    "required": ["inputs"],
}
RESPONSE: Schema = {
    "type": "object",
    "properties": {
        "model_name": {"type": "string"},
        "model_version": {"type": "string"},
        "id": {"type": "string"},
        "outputs": {"type": "array", "items": TENSOR},
    },
    "required": ["model_name", "model_version", "outputs"],
}
METADATA: Schema = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "versions": {"type": "array", "items": {"type": "string"}},
        "platform": {"type": "string"},
        "inputs": {"type": "array"},
        "outputs": {"type": "array"},
        "parameters": {"type": "object"},
    },
    "required": ["name", "versions", "platform", "inputs", "outputs"],
}
SERVER: Schema = {
    "type": "object",
    "required": ["name", "version", "extensions"],
}
INDEX: Schema = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["name", "version", "state", "reason"],
    },
}
EMPTY: Mapping[str, Schema] = {JSON: {"type": "object"}}
ONE_MODEL, ONE_VERSION = "/v2/models/{name}", "/v2/models/{name}/versions/{version}"


def endpoints() -> list[Endpoint]:
    """The endpoints of the protocol."""
    general = [
        Endpoint(
            *("GET", "/v2", "server_metadata", "The server and its extensions."),
            _server,
            {JSON: SERVER},
        ),
        Endpoint(
            *("GET", "/v2/health/live", "live", "Whether the server runs."),
            _live,
            EMPTY,
            public=True,
        ),
        Endpoint(
            *("GET", "/v2/health/ready", "ready", "Whether all models answer."),
            _ready,
            EMPTY,
            errors=(503,),
            public=True,
        ),
        Endpoint(
            *("POST", "/v2/repository/index", "index", "The models and their states."),
            _index,
            {JSON: INDEX},
        ),
    ]
    return [*general, *_of_model(ONE_MODEL, ""), *_of_model(ONE_VERSION, "_version")]


def _of_model(path: str, suffix: str) -> list[Endpoint]:
    return [
        Endpoint(
            *("GET", path, f"model_metadata{suffix}", "Inputs, outputs and classes."),
            _metadata,
            {JSON: METADATA},
        ),
        Endpoint(
            *("GET", f"{path}/ready", f"model_ready{suffix}", "Whether it answers."),
            _model_ready,
            EMPTY,
            errors=(503,),
        ),
        Endpoint(
            *("POST", f"{path}/infer", f"infer{suffix}", "Classify the input tensor."),
            _infer,
            {JSON: RESPONSE},
            body={JSON: REQUEST},
            errors=(400, 413, 415, 429, 503),
        ),
    ]


async def _server(service: Service, request: Request, _: RequestRecord) -> Response:
    return JSONResponse(
        {"name": "imprint", "version": __version__, "extensions": EXTENSIONS}
    )


async def _live(service: Service, request: Request, _: RequestRecord) -> Response:
    return JSONResponse({})


async def _ready(service: Service, request: Request, _: RequestRecord) -> Response:
    if not service.repository.ready:
        raise BusyError("A thread of the server has stopped.", 503, 1)
    return JSONResponse({})


async def _index(service: Service, request: Request, _: RequestRecord) -> Response:
    models = service.repository.models.values()
    index = [
        {"name": m.name, "version": m.version, "state": "READY", "reason": ""}
        for m in models
    ]
    return JSONResponse(index)


async def _metadata(
    service: Service, request: Request, record: RequestRecord
) -> Response:
    return JSONResponse(metadata(model_of(service, request, record)))


async def _model_ready(
    service: Service, request: Request, record: RequestRecord
) -> Response:
    model_of(service, request, record)
    return await _ready(service, request, record)


def metadata(model: LoadedModel) -> dict[str, Any]:
    """The metadata of a model: its tensors and, as parameters, its classes and the
    digest of its file.
    """
    is_embedding = not model.kind.needs_backbone
    given = {
        "name": INPUT,
        "datatype": "FP32" if is_embedding else BYTES,
        "shape": [-1, model.width] if is_embedding else [-1],
    }
    outputs = [
        {"name": LABEL, "datatype": BYTES, "shape": [-1]},
        {"name": PROBABILITY, "datatype": "FP64", "shape": [-1]},
    ]
    if model.head.calibrated:
        outputs.append({"name": KNOWN, "datatype": "FP64", "shape": [-1]})
    outputs.append(
        {"name": PROBABILITIES, "datatype": "FP64", "shape": [-1, len(model.classes)]}
    )
    return {
        "name": model.name,
        "versions": [model.version],
        "platform": "imprint",
        "inputs": [given],
        "outputs": outputs,
        "parameters": model_facts(model),
    }


async def _infer(service: Service, request: Request, record: RequestRecord) -> Response:
    model = model_of(service, request, record)
    async with read_request(service, request, record) as content:
        document, binary = _document(request, content)
        tensors = read_tensors(document, binary, plain=model.kind.typed)
        requested = _requested(document, model)
        inputs = _inputs(model, tensors)
        del content, binary, tensors
        options = _options(service, document, PROBABILITIES in requested)
        answers = await service.predict(record, model, inputs, options)
    response: dict[str, Any] = {
        "model_name": model.name,
        "model_version": model.version,
    }
    if "id" in document:
        response["id"] = document["id"]
    return _response(response, _outputs(answers, requested), requested)


def _document(request: Request, content: bytes) -> tuple[dict[str, Any], bytes]:
    """The JSON part of a request, and the binary data behind it."""
    stated = request.headers.get(HEADER_LENGTH, str(len(content)))
    if not stated.isdecimal() or int(stated) > len(content):
        raise ParameterError(
            f"{HEADER_LENGTH}: it must be the number of bytes of the JSON part."
        )
    length = int(stated)
    document = json_body(content[:length])
    for key, kind in (("id", str), ("parameters", dict), ("outputs", list)):
        if key in document and not isinstance(document[key], kind):
            raise ParameterError(f"{key}: it must be a JSON {NAMES[kind]}.")
    return document, content[length:]


NAMES: dict[type, str] = {str: "string", dict: "object", list: "array"}


def _requested(document: Mapping[str, Any], model: LoadedModel) -> dict[str, bool]:
    """The requested outputs, all if none is named, and whether each is sent in
    binary.
    """
    available = [output["name"] for output in metadata(model)["outputs"]]
    by_default = document.get("parameters", {}).get("binary_data_output") is True
    stated = document.get("outputs") or [{"name": name} for name in available]
    requested = {}
    for entry in stated:
        name = entry.get("name") if isinstance(entry, dict) else None
        parameters = entry.get("parameters", {}) if isinstance(entry, dict) else None
        if not isinstance(name, str) or not isinstance(parameters, dict):
            raise ParameterError("outputs: each must be an object with a name.")
        if name not in available:
            raise unknown("output", printable(name, 60), available)
        requested[name] = parameters.get("binary_data", by_default) is True
    return requested


def _inputs(model: LoadedModel, tensors: Sequence[Tensor]) -> list[tuple[str, Any]]:
    """The named inputs that the only tensor of a request holds."""
    kind = model.kind
    if len(tensors) != 1 or tensors[0].name != INPUT:
        raise ParameterError(
            f"inputs: the request must have one tensor, with the name {INPUT!r}."
        )
    tensor = tensors[0]
    items: Sequence[Any]
    if not kind.needs_backbone:
        if tensor.datatype == BYTES:
            raise ParameterError(f"{INPUT}: embeddings must be FP32 or FP64.")
        items = embeddings(model, tensor.values)
    elif tensor.datatype == BYTES:
        items = [_text(raw) for raw in tensor.values] if kind.typed else tensor.values
    else:
        items = [kind.convert(item) for item in kind.listed(tensor.values)]
    return [(f"{kind.noun} {i + 1}", item) for i, item in enumerate(items)]


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise ParameterError(f"{INPUT}: a text is not UTF-8.") from None


def _options(
    service: Service, document: Mapping[str, Any], every_class: bool
) -> PredictOptions:
    """The options of a request; its parameter `unknown` replaces that of the server."""
    unknown_below = document.get("parameters", {}).get(
        "unknown", service.options.unknown
    )
    is_number = isinstance(unknown_below, int | float) and 0 <= unknown_below <= 1
    if unknown_below is not None and not is_number:
        raise ParameterError("parameters: unknown must be a number from 0 to 1.")
    return service.options._replace(
        top=1, unknown=unknown_below, every_class=every_class, level=None
    )


def _outputs(
    answers: Sequence[Answer], requested: Mapping[str, bool]
) -> dict[str, Tensor]:
    predictions = [answer.prediction for answer in answers]
    n = len(answers)
    outputs = {}
    for name in requested:
        if name == LABEL:
            labels = [one["label"] for one in predictions]
            texts = ["" if label is None else str(label) for label in labels]
            encoded = [text.encode() for text in texts]
            outputs[name] = Tensor(name, BYTES, (n,), encoded)
        elif name == PROBABILITIES:
            rows = np.array([answer.probabilities for answer in answers], np.float64)
            outputs[name] = Tensor(name, "FP64", rows.shape, rows)
        else:
            values = np.array([one[name] for one in predictions], np.float64)
            outputs[name] = Tensor(name, "FP64", (n,), values)
    return outputs


def _response(
    response: dict[str, Any],
    outputs: Mapping[str, Tensor],
    requested: Mapping[str, bool],
) -> Response:
    described, binary = [], []
    for name, tensor in outputs.items():
        if requested[name]:
            entry, raw = write_binary(tensor)
            binary.append(raw)
        else:
            entry = write_json(tensor)
        described.append(entry)
    response["outputs"] = described
    if not binary:
        return JSONResponse(response)
    header = json.dumps(response).encode()
    return Response(
        header + b"".join(binary),
        media_type=BINARY,
        headers={HEADER_LENGTH: str(len(header))},
    )
