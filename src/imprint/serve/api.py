"""What the page and programs may ask; every answer is JSON, every refusal one sentence."""

import asyncio
import base64
import functools
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from imprint.core.errors import FileError, ImprintError, NotFittedError, ParameterError
from imprint.core.version import __version__
from imprint.modalities.image import read_picture
from imprint.serve import judge, takeaway
from imprint.serve.answers import answer
from imprint.serve.bodies import TooLargeError, body, json_body, number
from imprint.serve.events import Events
from imprint.serve.store import SIDES, encoded
from imprint.serve.taught import clean_name

if TYPE_CHECKING:
    from imprint.serve.classroom import Classroom

Handler = Callable[[Request], Awaitable[Response]]
AT_ONCE = 48
"""Requests that may hold a picture in memory at one time; the others wait."""
OFFERED = {"undo", "redo", "create", "move", "delete", "rename", "merge", "drop", "clear"}
YEAR = "private, max-age=31536000, immutable"
UNKNOWN = 0.05


class Api:
    """The addresses below /api."""

    def __init__(self, classroom: "Classroom"):
        self.classroom = classroom
        self.events = Events(classroom)
        self._room = asyncio.Semaphore(AT_ONCE)

    def routes(self) -> list[Route]:
        """Every address, its method and what answers it."""
        table: list[tuple[str, str, Handler]] = [
            ("GET", "/api/health", self.health),
            ("GET", "/api/state", self.state),
            ("GET", "/api/classes", self.classes),
            ("GET", "/api/events", self.news),
            ("POST", "/api/change", self.change),
            ("POST", "/api/items", self.add),
            ("GET", "/api/items/{number:int}/{kind}", self.shown),
            ("POST", "/api/predict", self.predict),
            ("GET", "/api/judge", self.judge),
            ("POST", "/api/open", self.open),
            ("GET", "/api/take/{what}", self.take),
        ]
        return [Route(path, _in_a_sentence(call), methods=[method]) for method, path, call in table]

    async def health(self, request: Request) -> Response:
        return JSONResponse({"status": "ok", "version": __version__})

    async def classes(self, request: Request) -> Response:
        taught = self.classroom.history.taught
        found = [
            {"label": label, "items": len(items), "opened": taught.classes[label] is not None}
            for label, items in taught.by_class().items()
        ]
        return JSONResponse(found)

    async def state(self, request: Request) -> Response:
        history = self.classroom.history
        text = self.classroom.modality == "text"
        classes = [
            {
                "label": label,
                "opened": history.taught.classes[label] is not None,
                "items": [[i.id, i.text if text else i.name, i.digest[:8]] for i in items],
            }
            for label, items in history.taught.by_class().items()
        ]
        return JSONResponse(
            {
                "revision": history.revision,
                "modality": self.classroom.modality,
                "backbone": self.classroom.backbone.record.name,
                "undo": history.can_undo,
                "redo": history.can_redo,
                "classes": classes,
            }
        )

    async def news(self, request: Request) -> Response:
        return StreamingResponse(self.events.stream(), media_type="text/event-stream")

    async def change(self, request: Request) -> Response:
        entry = await json_body(request)
        if entry.get("do") not in OFFERED:
            raise ParameterError(f"do={entry.get('do')!r}: a change must be one of {', '.join(sorted(OFFERED))}.")
        outcome = await asyncio.wrap_future(self.classroom.change(entry))
        return JSONResponse({"revision": outcome.revision})

    async def add(self, request: Request) -> Response:
        asked = request.query_params
        async with self._room:
            raw, name, row = await self._input(request)
            add = functools.partial(
                self.classroom.add, raw, row, asked.get("label", ""), name, asked.get("group", "")[:64]
            )
            outcome = await asyncio.wrap_future(await asyncio.to_thread(add))
        known = {"id": outcome.id, "new": outcome.new, "revision": outcome.revision}
        return JSONResponse(known, 201 if outcome.new else 200)

    async def predict(self, request: Request) -> Response:
        top, unknown = int(number(request, "top", 3, 1, 1000)), number(request, "unknown", UNKNOWN, 0, 1)
        why, preview = ("why" in request.query_params, "preview" in request.query_params)
        async with self._room:
            raw, name, row = await self._input(request)
            found = await asyncio.to_thread(self._answer, row, name, top, unknown, why)
            if preview and self.classroom.modality == "image":
                found["preview"] = await asyncio.to_thread(_preview, raw)
        return JSONResponse([found])

    def _answer(self, row: Any, name: str, top: int, unknown: float, why: bool) -> dict[str, Any]:
        model, judgement = self.classroom.model(), self.classroom.judgement()
        return answer(model, judgement, row, name, top=top, unknown=unknown, why=why)

    async def _input(self, request: Request) -> tuple[bytes, str, Any]:
        """What the request carries, its name, and its embedding."""
        kind = "text" if self.classroom.modality == "text" else "picture"
        if request.headers.get("content-type", "").startswith("application/json"):
            given = (await json_body(request, kind)).get("text")
            if kind != "text" or not isinstance(given, str):
                raise ParameterError(f"This page knows {kind}s: send one as the body of the request.")
            raw = given.encode()
        else:
            raw = await body(request, kind)
        name = clean_name(request.query_params.get("name", ""), kind)
        return raw, name, await asyncio.wrap_future(self.classroom.embed(raw, name))

    async def shown(self, request: Request) -> Response:
        item = self.classroom.history.taught.items.get(request.path_params["number"])
        kind = request.path_params["kind"]
        if item is None or item.text is not None or kind not in SIDES:
            return JSONResponse({"error": "There is no such picture."}, 404)
        made = await asyncio.to_thread(self.classroom.pictures.shown, item.digest, kind)
        return Response(made, media_type="image/jpeg", headers={"cache-control": YEAR})

    async def judge(self, request: Request) -> Response:
        found = await asyncio.to_thread(self._judged)
        return JSONResponse(found)

    def _judged(self) -> dict[str, Any]:
        return judge.as_json(self.classroom.judgement(), self.classroom.history.taught)

    async def open(self, request: Request) -> Response:
        raw = await body(request, "model")
        name = clean_name(request.query_params.get("name", ""), "The file")
        outcome = await asyncio.wrap_future(await asyncio.to_thread(self.classroom.open, raw, name))
        return JSONResponse({"revision": outcome.revision})

    async def take(self, request: Request) -> Response:
        what = request.path_params["what"]
        made = {
            "model.imprint": takeaway.model_file,
            "model.onnx": takeaway.onnx_file,
            "evaluation.html": takeaway.evaluation_file,
        }
        headers = {"content-disposition": f'attachment; filename="{what}"', "cache-control": "no-store"}
        if what == "pictures.zip":
            return StreamingResponse(takeaway.archive(self.classroom), media_type="application/zip", headers=headers)
        if what not in made:
            return JSONResponse({"error": f"There is no {what!r} to take away."}, 404)
        raw = await asyncio.to_thread(made[what], self.classroom)
        return Response(raw, media_type="application/octet-stream", headers=headers)


def _preview(raw: bytes) -> str:
    made = encoded(read_picture(raw, 480), 480)
    return "data:image/jpeg;base64," + base64.b64encode(made).decode()


def _in_a_sentence(call: Handler) -> Handler:
    """Errors as one sentence each, with a status that programs understand."""

    @functools.wraps(call)
    async def called(request: Request) -> Response:
        try:
            return await call(request)
        except TooLargeError as e:
            return JSONResponse({"error": str(e)}, 413, headers={"connection": "close"})
        except NotFittedError as e:
            return JSONResponse({"error": str(e)}, 409)
        except FileError as e:
            return JSONResponse({"error": str(e)}, 500 if e.errno else 400)
        except ImprintError as e:
            return JSONResponse({"error": str(e)}, 400)

    return called
