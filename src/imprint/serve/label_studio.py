"""`imprint serve --label-studio`: the project as a machine-learning backend of Label Studio.

Label Studio asks for predictions (`/predict`) and reports annotations (`/webhook`). A prediction's score is the place
of its task in our order, from 0 on: Label Studio's *uncertainty sampling* shows the task of the smallest score first.
"""

import asyncio
import base64
import binascii
import os
import urllib.error
import urllib.request
from concurrent.futures import Future
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote_to_bytes, urljoin, urlsplit
from xml.etree import ElementTree

import numpy as np

from imprint.active.suggestions import PreparedPool
from imprint.core.errors import ParameterError, UnreadableInput
from imprint.core.types import Array
from imprint.serve.model import ServedModel, answer
from imprint.serve.store import digest_of

if TYPE_CHECKING:
    from starlette.routing import Route

    from imprint.serve.project import Project

URL = "http://localhost:8080"
"""Where Label Studio runs, unless LABEL_STUDIO_URL names another address."""
LARGEST = 32 << 20  # bytes of a picture
SECONDS = 30.0  # within which a picture must come
RANKED = 500
"""Tasks that are put in order; the others follow by the probability of their prediction."""
CREATED, DELETED = ("ANNOTATION_CREATED", "ANNOTATION_UPDATED"), "ANNOTATIONS_DELETED"


class LabelConfig(NamedTuple):
    """What a labelling configuration says: the names of its tags and the field of a task that holds the input."""

    from_name: str
    to_name: str
    field: str

    @classmethod
    def parse(cls, xml: Any) -> "LabelConfig":
        """Read `<Choices name toName>` and the `<Image>` or `<Text>` that it belongs to.

        >>> LabelConfig.parse('<View><Text name="t" value="$x"/><Choices name="c" toName="t"/></View>')
        LabelConfig(from_name='c', to_name='t', field='x')
        """
        try:
            root = ElementTree.fromstring(str(xml))
            choices = next(root.iter("Choices"))
            shown = {e.get("name", ""): e.get("value", "") for e in root.iter() if e.tag in ("Image", "Text")}
            target = choices.attrib["toName"]
            return cls(choices.attrib["name"], target, shown[target].removeprefix("$"))
        except (ElementTree.ParseError, StopIteration, KeyError):
            raise ParameterError("The labelling configuration must have <Choices> for an <Image> or <Text>.") from None


class StudioTask(NamedTuple):
    """An input that Label Studio has asked about."""

    digest: str
    row: Array


class LabelStudio:
    """Predictions, training and order for one project of Label Studio. Requests come in any thread."""

    def __init__(self, project: "Project", token: str, url: str = URL, key: str = ""):
        self.project, self.prefix, self.url, self.key = project, f"/label-studio/{token}", url.rstrip("/"), key
        self._tasks: dict[int, StudioTask] = {}
        self._items: dict[int, int] = {}  # annotation -> item
        self._config: LabelConfig | None = None
        self._lock = Lock()

    @classmethod
    def from_environment(cls, project: "Project", token: str) -> "LabelStudio":
        """With the address and the key in LABEL_STUDIO_URL and LABEL_STUDIO_API_KEY."""
        return cls(project, token, os.environ.get("LABEL_STUDIO_URL", URL), os.environ.get("LABEL_STUDIO_API_KEY", ""))

    def routes(self) -> "list[Route]":
        """The addresses of the protocol below `/label-studio/TOKEN`."""
        from starlette.responses import JSONResponse
        from starlette.routing import Route

        from imprint.serve.requests import guarded, json_body

        def route(path: str, call: Any, method: str = "POST") -> Route:
            async def respond(request: Any) -> Any:
                given = (await json_body(request, "model"),) if method == "POST" else ()
                return JSONResponse(await asyncio.to_thread(call, *given))

            return Route(self.prefix + path, guarded(respond), methods=[method])

        return [
            *(route(path, self.health, "GET") for path in ("", "/", "/health")),
            *(route(f"/{call.__name__}", call) for call in (self.setup, self.predict, self.webhook)),
        ]

    @property
    def version(self) -> str:
        """Changes with every label."""
        return f"imprint-{self.project.history.revision}"

    def health(self) -> dict[str, Any]:
        """That the backend works."""
        return {"status": "UP", "model_class": "imprint"}

    def setup(self, given: dict[str, Any]) -> dict[str, Any]:
        """Take the labelling configuration, and the key by which pictures are fetched if none was set."""
        self._config = LabelConfig.parse(given.get("schema"))
        if not self.key and str(given.get("hostname", "")).rstrip("/") in ("", self.url):
            self.key = str(given.get("access_token") or "")
        return {"model_version": self.version}

    def predict(self, given: dict[str, Any]) -> dict[str, Any]:
        """A class with its probability for every task, and its place in our order as the score."""
        tasks = given.get("tasks")
        if not isinstance(tasks, list):
            raise ParameterError("predict: `tasks` must be a list.")
        if given.get("label_config"):
            self._config = LabelConfig.parse(given["label_config"])
        config = self._configured()
        self._look(tasks, config)
        model = self.project.calibrated_model()
        scores = self._scores(model)
        return {"results": [self._prediction(task, model, config, scores) for task in tasks]}

    def webhook(self, given: dict[str, Any]) -> dict[str, Any]:
        """Learn an annotation that was created or changed, and forget one that was deleted."""
        action = given.get("action")
        if action in CREATED:
            self._learn(given.get("annotation") or {}, given.get("task") or {})
        elif action == DELETED:
            numbers = [a.get("id") if isinstance(a, dict) else a for a in given.get("annotations") or []]
            ids = [self._items.pop(n) for n in numbers if n in self._items]
            ids = [i for i in ids if i in self.project.history.labelled.items]
            if ids:
                self.project.change({"do": "delete", "ids": ids}).result()
        return {"status": "ok", "model_version": self.version}

    def _learn(self, annotation: dict[str, Any], task: dict[str, Any]) -> None:
        config = self._configured()
        regions = [r for r in annotation.get("result") or [] if r.get("from_name") == config.from_name]
        chosen = regions[0].get("value", {}).get("choices") if regions else None
        if not chosen:
            return
        raw = self._content(task, config)
        row = self.project.embed(raw, _name(task)).result()
        self._tasks[int(task["id"])] = StudioTask(digest_of(raw), row)
        outcome = self.project.add(raw, row, str(chosen[0]), _name(task)).result()
        if outcome.id is not None:
            self._items[int(annotation.get("id") or 0)] = outcome.id
        if outcome.others:  # the annotation replaces an earlier one of another class
            self.project.change({"do": "delete", "ids": [item.id for item in outcome.others]}).result()

    def _configured(self) -> LabelConfig:
        if self._config is None:
            raise ParameterError("Label Studio has not sent its labelling configuration: connect the model first.")
        return self._config

    def _look(self, tasks: list[Any], config: LabelConfig) -> None:
        """Embed the tasks that are new; one that cannot be read has no prediction."""
        waiting: dict[int, tuple[str, Future[Array]]] = {}
        for task in tasks:
            if int(task["id"]) not in self._tasks:
                with suppress(UnreadableInput):
                    raw = self._content(task, config)
                    waiting[int(task["id"])] = digest_of(raw), self.project.embed(raw, _name(task))
        for number, (digest, future) in waiting.items():
            with suppress(UnreadableInput):
                self._tasks[number] = StudioTask(digest, future.result())

    def _scores(self, model: ServedModel) -> dict[int, float]:
        """The place in our order of the tasks without a label, from 0 to less than 0.5."""
        with self._lock:
            labelled = {item.digest for item in model.history.labelled.items.values()}
            tasks = [n for n, task in self._tasks.items() if task.digest not in labelled]
            if not tasks:
                return {}
            pool = PreparedPool(np.stack([self._tasks[n].row for n in tasks]))
            order = pool.suggest(min(len(tasks), RANKED), model.head).tolist()
        return {tasks[i]: place / (2 * len(order)) for place, i in enumerate(order)}

    def _prediction(
        self,
        task: dict[str, Any],
        model: ServedModel,
        config: LabelConfig,
        scores: dict[int, float],
    ) -> dict[str, Any]:
        number = int(task["id"])
        known = self._tasks.get(number)
        if known is None:
            return {"result": [], "score": 1.0, "model_version": self.version}
        if model.head is None:
            return {"result": [], "score": scores.get(number, 0.5), "model_version": self.version}
        best = answer(model, known.row, _name(task), top=1)["top"][0]
        region = {"from_name": config.from_name, "to_name": config.to_name, "type": "choices"}
        result = [{**region, "value": {"choices": [best["label"]]}, "score": best["probability"]}]
        score = scores.get(number, 0.5 + best["probability"] / 2)
        return {"result": result, "score": score, "model_version": self.version}

    def _content(self, task: dict[str, Any], config: LabelConfig) -> bytes:
        value = (task.get("data") or {}).get(config.field)
        if not isinstance(value, str):
            raise UnreadableInput(_name(task), f"its data have no {config.field!r}")
        return value.encode() if self.project.modality.typed else fetched(value, self.url, self.key)


def fetched(address: str, url: str, key: str) -> bytes:
    """The bytes of a picture: a data URI, or a file of the Label Studio at `url` and of no other server."""
    if address.startswith("data:"):
        head, _, body = address.partition(",")
        try:
            return base64.b64decode(body, validate=True) if head.endswith(";base64") else unquote_to_bytes(body)
        except binascii.Error:
            raise UnreadableInput("the data URI", "it is not base64") from None
    full = urljoin(url + "/", address)
    if urlsplit(full)[:2] != urlsplit(url)[:2]:
        raise UnreadableInput(address[:200], f"only files of {url} are fetched; set LABEL_STUDIO_URL")
    headers = {"Authorization": f"Token {key}"} if key else {}
    try:
        opener = urllib.request.build_opener(_NoRedirect())
        with opener.open(urllib.request.Request(full, headers=headers), timeout=SECONDS) as response:
            raw: bytes = response.read(LARGEST + 1)
    except (OSError, ValueError) as e:
        hint = "; set LABEL_STUDIO_API_KEY" if isinstance(e, urllib.error.HTTPError) and e.code in (401, 403) else ""
        raise UnreadableInput(address[:200], f"{e}{hint}") from None
    if len(raw) > LARGEST:
        raise UnreadableInput(address[:200], f"larger than {LARGEST >> 20} MB")
    return raw


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: it would send the key elsewhere."""

    def redirect_request(self, *args: Any, **options: Any) -> None:
        return None


def _name(task: dict[str, Any]) -> str:
    return f"task {task.get('id')}"
