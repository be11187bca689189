"""The routes below /api. Every response is JSON or a file, every error `{"error":
sentence}`.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from functools import partial
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from imprint.core import __version__
from imprint.core.errors import NotFittedError, ParameterError
from imprint.datasets.samples import sample_archive
from imprint.serve import export, view
from imprint.serve.labelled import clean_label, clean_name
from imprint.serve.model import answer
from imprint.serve.project import Project
from imprint.serve.requests import (
    DEADLINE,
    INPUT,
    Endpoints,
    Handler,
    json_object,
    number,
)
from imprint.serve.store import digest_of

Json = dict[str, Any]
CHANGES = (
    "clear",
    "create",
    "delete",
    "describe",
    "drop",
    "hold",
    "merge",
    "move",
    "redo",
    "rename",
    "undo",
)
EXAMPLES = "examples.zip"  # of images, sounds or texts
REPORT, MODELS = "evaluation.html", ("model.imprint", "model.onnx")
CACHE_CONTROL = "private, max-age=31536000, immutable"
DEFAULT_UNKNOWN = 0.05  # p-value below which an input is none of the classes
# longest side, in pixels, of the images of items
SIDES = {"thumbnail": 224, "image": 1280}
# seconds after which an event is sent in any case, to notice closed connections
HEARTBEAT = 15.0


def routes(endpoints: Endpoints) -> list[Route]:
    """Every route; the addresses of earlier versions (`judge`, `open`, `take`) stay."""
    projects = endpoints.projects
    get: dict[str, Handler] = {
        "/api/health": health,
        "/api/projects": lambda *_: projects.as_json(),
        "/api/state": lambda project, *_: {
            **view.state(project),
            "token_file": str(projects.first / "token"),
        },
        "/api/classes": lambda project, *_: [
            {**one, "items": len(one["items"])} for one in view.classes(project)
        ],
        "/api/events": lambda project, *_: StreamingResponse(
            events(project), media_type="text/event-stream"
        ),
        "/api/items/{number:int}/{kind}": preview,
        "/api/drift": lambda project, *_: project.drift.as_json(),
        "/api/sample": sample,
        "/api/evaluation": evaluation,
        "/api/judge": evaluation,
        "/api/export/{what}": export_file,
        "/api/take/{what}": export_file,
        "/api/pool": lambda project, *_: {
            "inputs": len(project.pool.rows),
            "left": len(project.pool.left()),
        },
        "/api/pool/next": lambda project, request, _: project.pool.suggest(
            int(number(request, "n", 20, 1, 200)), request.query_params.get("session")
        ),
        "/api/pool/confident": lambda project, request, _: project.pool.confident(
            number(request, "probability", 0.95, 0, 1)
        ),
    }
    post: dict[str, tuple[Handler, str]] = {
        "/api/projects": (
            lambda _, __, content: projects.change(json_object(content)),
            "change",
        ),
        "/api/change": (change, "change"),
        "/api/items": (add, INPUT),
        "/api/predict": (predict, INPUT),
        "/api/explain": (explain, INPUT),
        "/api/drift": (lambda project, *_: project.drift.restart(), ""),
        "/api/import": (import_model, "model"),
        "/api/open": (import_model, "model"),
        "/api/pool": (add_to_pool, INPUT),
        "/api/pool/skip": (
            lambda project, _, content: project.pool.skip(json_object(content)),
            "change",
        ),
    }
    return [
        *(endpoints.route("GET", path, handle) for path, handle in get.items()),
        *(
            endpoints.route("POST", path, handle, kind)
            for path, (handle, kind) in post.items()
        ),
    ]


def health(project: Project, request: Request, _: bytes) -> Response:
    threads = project.threads()
    healthy = all(one["alive"] for one in threads.values())
    status = {
        "status": "ok" if healthy else "failing",
        "version": __version__,
        "threads": threads,
    }
    return JSONResponse(status, 200 if healthy else 503)


async def events(project: Project) -> AsyncIterator[str]:
    """Server-sent events: the newest revision, the newest one that was evaluated, and
    the drift alarm.

    An event follows every change of these, and the page then requests what it shows.
    """
    sent, sent_at = "", 0.0
    with project.news.listening() as changed:
        while not project.closed:
            # before the state is read, so that no change after that is missed
            changed.clear()
            evaluated = project.evaluation.model.history.revision
            news = {
                "revision": project.history.revision,
                "evaluated": evaluated,
                "alarm": project.drift.monitor.alarm,
            }
            event = json.dumps({"project": project.folder.name, **news})
            if event != sent or time.monotonic() > sent_at + HEARTBEAT:
                sent, sent_at = event, time.monotonic()
                yield f"data: {event}\n\n"
            with suppress(TimeoutError):
                await asyncio.wait_for(changed.wait(), HEARTBEAT)


def change(project: Project, request: Request, content: bytes) -> Json:
    entry = json_object(content)
    kind = entry.get("do")
    if kind not in CHANGES:
        raise ParameterError(
            f"do={kind!r}: a change must be one of {', '.join(CHANGES)}."
        )
    make = project.describe if kind == "describe" else project.change
    outcome = make(entry).result(DEADLINE)
    return {"revision": outcome.revision, "changed": outcome.new}


def add(project: Project, request: Request, content: bytes) -> Response:
    query = request.query_params
    label, group, held_out = (
        clean_label(query.get("label", "")),
        query.get("group", "")[:64],
        "held_out" in query,
    )
    raw, name, row = _input(project, request, content)
    outcome = project.add(raw, row, label, name, group, held_out).result(DEADLINE)
    others = [{"id": item.id, "label": item.label} for item in outcome.others]
    summary = {
        "id": outcome.id,
        "new": outcome.new,
        "revision": outcome.revision,
        "others": others,
    }
    return JSONResponse(summary, 201 if outcome.new else 200)


def predict(project: Project, request: Request, content: bytes) -> list[Json]:
    query = request.query_params
    top, unknown = (
        int(number(request, "top", 3, 1, 1000)),
        number(request, "unknown", DEFAULT_UNKNOWN, 0, 1),
    )
    level = int(number(request, "level", 1, 1, 100)) if "level" in query else None
    raw, name, row = _input(project, request, content)
    model = project.calibrated_model()
    if (
        "unknown" in query
        and unknown > 0
        and model.decider is not None
        and not model.decider.calibrated
    ):
        newest = project.evaluated().result(DEADLINE)
        if newest.calibration is None:
            problem = (
                f"unknown={query['unknown']} cannot be applied, because the model is"
                " not calibrated"
            )
            raise NotFittedError(f"{problem}. {newest.why_uncalibrated}")
        model = project.calibrated_model()
    predicted = answer(
        model, row, name, top=top, unknown=unknown, level=level, why="why" in query
    )
    shown = partial(view.inline_preview, project.modality, raw)
    # The page asks with drift=0 about frames of a camera, about texts that are being
    # typed, and again after an evaluation: nobody submitted these as new inputs.
    if model.head is not None and query.get("drift") != "0":
        digest = digest_of(raw)
        project.drift.observe(model.head, predicted["known"], name, digest, shown)
    if "preview" in query:
        predicted["preview"] = shown()
    return [predicted]


def explain(project: Project, request: Request, content: bytes) -> Json:
    """What speaks for the predicted class and against the second: a transparent image
    to lay over the input, or its words or times with their strengths.
    """
    raw = _content(project, request, content)
    explanation = project.explain(raw)
    strengths = explanation.strengths.ravel().tolist()
    parts = [
        {"name": name, "strength": strength}
        for name, strength in zip(explanation.names, strengths)
    ]
    overlay = None if explanation.image is None else explanation.overlay_uri()
    return {
        "label": explanation.label,
        "against": explanation.against,
        "method": explanation.method,
        "overlay": overlay,
        "parts": parts,
        "unmapped": list(explanation.unmapped),
    }


def add_to_pool(project: Project, request: Request, content: bytes) -> Response:
    raw, _, row = _input(project, request, content)
    session = request.query_params.get("session")
    return JSONResponse({"digest": project.pool.add(raw, row, session)}, 201)


def _input(
    project: Project, request: Request, content: bytes
) -> tuple[bytes, str, Any]:
    """The input that a request carries, its name and its embedding, which is computed
    if it is not cached.
    """
    content = _content(project, request, content)
    name, row = (
        clean_name(request.query_params.get("name", ""), project.modality.noun),
        project.rows.get(digest_of(content)),
    )
    return (
        content,
        name,
        project.embed(content, name).result(DEADLINE) if row is None else row,
    )


def _content(project: Project, request: Request, content: bytes) -> bytes:
    """The bytes of an input that a request carries as they are or, a text, as JSON."""
    modality = project.modality
    if not request.headers.get("content-type", "").startswith("application/json"):
        return content
    text = json_object(content).get("text")
    if not modality.typed or not isinstance(text, str):
        raise ParameterError(
            f"This page reads {modality.plural}: send one as the body of the request."
        )
    return text.encode()


def preview(project: Project, request: Request, _: bytes) -> Response:
    item = project.history.labelled.items.get(request.path_params["number"])
    side = SIDES.get(request.path_params["kind"])
    if item is None or item.text is not None or side is None:
        raise HTTPException(404, f"There is no such {project.modality.noun}.")
    media_type, raw = view.preview(project.modality, project.content(item), side)
    return Response(
        raw, media_type=media_type, headers={"cache-control": CACHE_CONTROL}
    )


def sample(project: Project, request: Request, _: bytes) -> Response:
    """A labelled set to try the page with, as an archive."""
    archive = sample_archive(project.modality.name)
    if archive is None:
        raise HTTPException(404, f"There are no sample {project.modality.plural}.")
    return Response(archive, media_type="application/zip")


def evaluation(project: Project, request: Request, _: bytes) -> Json:
    newest, history = project.evaluation, project.history
    failure = (
        project.evaluator.error
        if newest.model.history.revision < history.revision
        else None
    )
    return {**view.evaluated(newest, history.labelled), "error": failure}


def import_model(project: Project, request: Request, content: bytes) -> Json:
    name = clean_name(request.query_params.get("name", ""), "The file")
    outcome = project.import_model(content, name).result(DEADLINE)
    return {
        "revision": outcome.revision,
        "merged": list(outcome.merged),
        "notices": list(outcome.notices),
    }


def export_file(project: Project, request: Request, _: bytes) -> Response:
    what = request.path_params["what"]
    headers = {
        "content-disposition": f'attachment; filename="{what}"',
        "cache-control": "no-store",
    }
    if what == EXAMPLES:
        return StreamingResponse(
            export.archive(project), media_type="application/zip", headers=headers
        )
    if what not in (REPORT, *MODELS):
        raise HTTPException(404, f"There is no {what!r} to export.")
    newest = project.evaluated().result(DEADLINE)
    raw = (
        export.evaluation_file(project, newest)
        if what == REPORT
        else export.model_file(project, newest, what)
    )
    return Response(raw, media_type="application/octet-stream", headers=headers)
