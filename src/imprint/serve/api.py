"""The routes below /api, one method each. Every response is JSON or a file, every error `{"error": sentence}`."""

import asyncio
import base64
from typing import TYPE_CHECKING, Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from imprint.core import __version__
from imprint.core.errors import NotFittedError, ParameterError
from imprint.modalities import Modality
from imprint.serve import evaluation, export, view
from imprint.serve.drift import ServedDrift
from imprint.serve.label import MAX_NEXT, LabellingPool
from imprint.serve.labels import clean_label, clean_name
from imprint.serve.model import answer
from imprint.serve.requests import Handler, body, events, guarded, json_body, number
from imprint.serve.store import digest_of, preview

if TYPE_CHECKING:
    from imprint.serve.project import Project
    from imprint.serve.projects import Projects

Json = dict[str, Any]
AT_ONCE = 48
"""Maximum number of requests that hold an input in memory; the others wait."""
CHANGES = {"undo", "redo", "create", "describe", "move", "hold", "delete", "rename", "merge", "drop", "clear"}
EXPORTS = {
    "model.imprint": export.model_file,
    "model.onnx": export.onnx_file,
    "evaluation.html": export.evaluation_file,
}
YEAR = "private, max-age=31536000, immutable"
UNKNOWN = 0.05
SIDES = {"thumbnail": 224, "picture": 1280}
"""Longest side, in pixels, of the pictures of items."""
SIDE = 480  # of a picture that is classified


class Api:
    """The routes below /api for one project."""

    def __init__(self, project: "Project", projects: "Projects | None" = None):
        self.project, self.projects = project, projects
        self.drift, self.pool = ServedDrift(), LabellingPool(project)
        self._room = asyncio.Semaphore(AT_ONCE)

    def routes(self) -> list[Route]:
        """Every route; the addresses of earlier versions (`judge`, `open`, `take`) stay."""
        table: list[tuple[str, str, Handler]] = [
            ("GET", "/api/health", self.health),
            ("GET", "/api/projects", self.list_projects),
            ("POST", "/api/projects", self.change_projects),
            ("GET", "/api/state", self.state),
            ("GET", "/api/classes", self.classes),
            ("GET", "/api/events", self.events),
            ("POST", "/api/change", self.change),
            ("POST", "/api/items", self.add),
            ("GET", "/api/items/{number:int}/{kind}", self.preview),
            ("POST", "/api/predict", self.predict),
            ("GET", "/api/drift", self.drift_state),
            ("POST", "/api/drift", self.restart_drift),
            ("GET", "/api/evaluation", self.evaluation),
            ("GET", "/api/judge", self.evaluation),
            ("POST", "/api/import", self.import_model),
            ("POST", "/api/open", self.import_model),
            ("GET", "/api/export/{what}", self.export),
            ("GET", "/api/take/{what}", self.export),
            ("POST", "/api/pool", self.add_to_pool),
            ("GET", "/api/pool", self.pool_state),
            ("GET", "/api/pool/next", self.next_in_pool),
            ("POST", "/api/pool/skip", self.skip_in_pool),
            ("GET", "/api/pool/confident", self.confident_in_pool),
        ]
        return [Route(path, guarded(call), methods=[method]) for method, path, call in table]

    # Methods that are not `async` run in a thread.

    async def health(self, request: Request) -> Response:
        threads = self.project.threads()
        healthy = all(one["alive"] for one in threads.values())
        status = {"status": "ok" if healthy else "failing", "version": __version__, "threads": threads}
        return JSONResponse(status, 200 if healthy else 503)

    def list_projects(self, request: Request) -> Json:
        return self._projects().as_json()

    async def change_projects(self, request: Request) -> Json:
        return await asyncio.to_thread(self._projects().change, await json_body(request))

    def _projects(self) -> "Projects":
        if self.projects is None:
            raise ParameterError("A server for Label Studio keeps its project; start another without --label-studio.")
        return self.projects

    def classes(self, request: Request) -> list[Json]:
        labelled = self.project.history.labelled
        return [
            {"label": label, "items": len(items), "opened": labelled.classes[label] is not None}
            for label, items in labelled.by_class().items()
        ]

    def state(self, request: Request) -> Json:
        token_file = (self.projects.first if self.projects else self.project.folder) / "token"
        return {**view.state(self.project), "token_file": str(token_file)}

    async def events(self, request: Request) -> Response:
        return StreamingResponse(events(self.project, self.drift), media_type="text/event-stream")

    async def change(self, request: Request) -> Json:
        entry = await json_body(request)
        kind = entry.get("do")
        if not isinstance(kind, str) or kind not in CHANGES:
            raise ParameterError(f"do={kind!r}: a change must be one of {', '.join(sorted(CHANGES))}.")
        make = self.project.describe if kind == "describe" else self.project.change
        outcome = await asyncio.wrap_future(await asyncio.to_thread(make, entry))
        return {"revision": outcome.revision}

    async def add(self, request: Request) -> Response:
        query = request.query_params
        label, group, held_out = clean_label(query.get("label", "")), query.get("group", "")[:64], "held_out" in query
        async with self._room:
            raw, name, row = await self._input(request)
            added = await asyncio.to_thread(self.project.add, raw, row, label, name, group, held_out)
            outcome = await asyncio.wrap_future(added)
        others = [{"id": item.id, "label": item.label} for item in outcome.others]
        summary = {"id": outcome.id, "new": outcome.new, "revision": outcome.revision, "others": others}
        return JSONResponse(summary, 201 if outcome.new else 200)

    async def predict(self, request: Request) -> list[Json]:
        query = request.query_params
        top, unknown = int(number(request, "top", 3, 1, 1000)), number(request, "unknown", UNKNOWN, 0, 1)
        level = int(number(request, "level", 1, 1, 100)) if "level" in query else None
        async with self._room:
            raw, name, row = await self._input(request)
            if "unknown" in query and unknown > 0:
                await self._require_calibration(query["unknown"])
            options = {"top": top, "unknown": unknown, "level": level, "why": "why" in query}
            predicted = await asyncio.to_thread(self._answer, raw, row, name, **options)
            if "preview" in query:
                predicted["preview"] = await asyncio.to_thread(_shown, self.project.modality, raw)
        return [predicted]

    def _answer(self, raw: bytes, row: Any, name: str, **options: Any) -> Json:
        model = self.project.calibrated_model()
        predicted = answer(model, row, name, **options)
        if model.calibration is not None:
            self.drift.observe(model.calibration, predicted["known"], name, lambda: _shown(self.project.modality, raw))
        return predicted

    async def _require_calibration(self, given: str) -> None:
        """Wait for the evaluation that `unknown` needs; refuse a model that cannot be calibrated."""
        model = await asyncio.to_thread(self.project.calibrated_model)
        if model.decider is None or model.decider.calibrated:
            return
        newest = await asyncio.wrap_future(self.project.evaluated())
        if newest.calibration is None:
            reason = evaluation.why_uncalibrated(model.history.labelled, model.basis.folds)
            raise NotFittedError(f"unknown={given} cannot be applied, because the model is not calibrated. {reason}")

    def drift_state(self, request: Request) -> Json:
        return self.drift.as_json()

    def restart_drift(self, request: Request) -> Json:
        self.drift.restart()
        return self.drift.as_json()

    async def add_to_pool(self, request: Request) -> Response:
        async with self._room:
            raw, _, row = await self._input(request)
        return JSONResponse({"digest": self.pool.add(raw, row)}, 201)

    def pool_state(self, request: Request) -> Json:
        return {"inputs": self.pool.size, "left": len(self.pool.left())}

    def next_in_pool(self, request: Request) -> list[Json]:
        return self.pool.suggest(int(number(request, "n", 20, 1, MAX_NEXT)))

    async def skip_in_pool(self, request: Request) -> Json:
        entry = await json_body(request)
        self.pool.skip(str(entry.get("digest")), entry.get("skip") is not False)
        return {"left": len(self.pool.left())}

    def confident_in_pool(self, request: Request) -> list[Json]:
        return self.pool.confident(number(request, "probability", 0.95, 0, 1))

    async def _input(self, request: Request) -> tuple[bytes, str, Any]:
        """The input that a request carries, its name and its embedding, which is computed if it is not cached."""
        modality = self.project.modality
        kind = "text" if modality.typed else "file"
        if request.headers.get("content-type", "").startswith("application/json"):
            text = (await json_body(request, kind)).get("text")
            if not modality.typed or not isinstance(text, str):
                raise ParameterError(f"This page reads {modality.plural}: send one as the body of the request.")
            raw = text.encode()
        else:
            raw = await body(request, kind)
        name, digest = clean_name(request.query_params.get("name", ""), modality.noun), digest_of(raw)
        if digest in self.project.rows:
            return raw, name, self.project.rows[digest]
        return raw, name, await asyncio.wrap_future(await asyncio.to_thread(self.project.embed, raw, name))

    def preview(self, request: Request) -> Response:
        item = self.project.history.labelled.items.get(request.path_params["number"])
        kind = request.path_params["kind"]
        if item is None or item.text is not None or kind not in SIDES:
            raise HTTPException(404, f"There is no such {self.project.modality.noun}.")
        media_type, raw = preview(self.project.modality, self.project.content(item), SIDES[kind])
        return Response(raw, media_type=media_type, headers={"cache-control": YEAR})

    def evaluation(self, request: Request) -> Json:
        newest, history = self.project.evaluation(), self.project.history
        failure = self.project.evaluation_error if newest.history.revision < history.revision else None
        return {**view.evaluated(newest, history.labelled), "error": failure}

    async def import_model(self, request: Request) -> Json:
        raw = await body(request, "model")
        name = clean_name(request.query_params.get("name", ""), "The file")
        outcome = await asyncio.wrap_future(await asyncio.to_thread(self.project.import_model, raw, name))
        return {"revision": outcome.revision}

    async def export(self, request: Request) -> Response:
        what = request.path_params["what"]
        headers = {"content-disposition": f'attachment; filename="{what}"', "cache-control": "no-store"}
        if what == "pictures.zip":
            return StreamingResponse(export.archive(self.project), media_type="application/zip", headers=headers)
        if what not in EXPORTS:
            raise HTTPException(404, f"There is no {what!r} to export.")
        newest = await asyncio.wrap_future(self.project.evaluated())
        raw = await asyncio.to_thread(EXPORTS[what], self.project, newest)
        return Response(raw, media_type="application/octet-stream", headers=headers)


def _shown(modality: Modality, raw: bytes) -> str:
    """An input as the page shows it: a text, or a data URL."""
    if modality.typed:
        return raw.decode("utf-8", "replace")[:300]
    media_type, content = preview(modality, raw, SIDE)
    return f"data:{media_type};base64,{base64.b64encode(content).decode()}"
