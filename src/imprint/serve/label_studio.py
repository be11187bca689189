"""`imprint serve --label-studio`: the project as a machine-learning backend of Label
Studio.

Label Studio asks for predictions (`/predict`) and reports annotations (`/webhook`). The
score of a prediction is the position of its task in the order of labelling, scaled to
0..1, because the *uncertainty sampling* of Label Studio shows the task with the
smallest score first.
"""

import os
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.client import HTTPException
from typing import Any, NamedTuple
from urllib.error import HTTPError
from urllib.parse import urljoin, urlsplit
from xml.etree import ElementTree

from starlette.routing import Route

from imprint.core.arrays import Array
from imprint.core.errors import (
    ParameterError,
    UnreadableInput,
    first_line,
    printable,
)
from imprint.serve.project import Project
from imprint.serve.requests import DEADLINE, MAX_BYTES, Endpoints, json_object
from imprint.serve.unlabelled import LabellingPool

Json = dict[str, Any]
FETCH_SECONDS = 30.0  # maximum time to fetch an image
# maximum number of images that are fetched and decoded at the same time
MAX_FETCHES = 16
# number of tasks that are ranked; the others follow, those with the least probable
# prediction first
MAX_RANKED = 500
MAX_NAME_LENGTH = 200  # characters of an address, or of a reason, in a message
CREATE_EVENTS, DELETE_EVENT = (
    ("ANNOTATION_CREATED", "ANNOTATION_UPDATED"),
    "ANNOTATIONS_DELETED",
)


class LabelConfig(NamedTuple):
    """A labelling configuration: the names of its elements, and the field of a task
    that holds the input.
    """

    from_name: str
    to_name: str
    field: str

    @classmethod
    def parse(cls, xml: Any) -> "LabelConfig":
        """Read `<Choices name toName>` and the `<Image>` or `<Text>` that it belongs
        to.
        """
        try:
            root = ElementTree.fromstring(xml if isinstance(xml, str) else "")
            choices = next(root.iter("Choices"))
            shown = {
                e.get("name", ""): e.get("value", "")
                for e in root.iter()
                if e.tag in ("Image", "Text")
            }
            target = choices.attrib["toName"]
            return cls(choices.attrib["name"], target, shown[target].removeprefix("$"))
        # ValueError, LookupError: an encoding that it states
        except (ElementTree.ParseError, StopIteration, LookupError, ValueError):
            raise ParameterError(
                "The labelling configuration must have <Choices> for an <Image> or"
                " <Text>."
            ) from None


class LabelTask(NamedTuple):
    """A task of Label Studio: one input to label."""

    id: int
    data: Json

    @classmethod
    def parse(cls, value: Any) -> "LabelTask":
        """Read a task of a request; anything else is refused."""
        task = _object(value, "task")
        return cls(_id(task, "task"), _object(task.get("data") or {}, "task's `data`"))

    @property
    def name(self) -> str:
        return f"task {self.id}"


class LabelStudio:
    """Predictions, training and the order of tasks for one project of Label Studio. Any
    thread may call it.
    """

    def __init__(self, project: Project):
        self.project, self._pool = project, LabellingPool(project)
        self.url = os.environ.get("LABEL_STUDIO_URL", "http://localhost:8080").rstrip(
            "/"
        )
        self.key = os.environ.get("LABEL_STUDIO_API_KEY", "")
        self._digests: dict[int, str] = {}  # task -> digest of its input
        self._items: dict[int, int] = {}  # annotation -> item
        self._config: LabelConfig | None = None

    def routes(self, endpoints: Endpoints, prefix: str) -> list[Route]:
        """The addresses of the protocol below `/label-studio/TOKEN`."""
        alive = {"status": "UP", "model_class": "imprint"}

        def post(call: Callable[[Json], Json]) -> Route:
            path = f"{prefix}/{call.__name__}"
            return endpoints.route(
                "POST", path, lambda _, __, content: call(json_object(content)), "tasks"
            )

        health = [
            endpoints.route("GET", prefix + path, lambda *_: alive)
            for path in ("", "/", "/health")
        ]
        return [*health, *map(post, (self.setup, self.predict, self.webhook))]

    @property
    def version(self) -> str:
        """The version of the model, which changes with every label."""
        return f"imprint-{self.project.history.revision}"

    def setup(self, payload: Json) -> Json:
        """Store the labelling configuration, and the key for fetching images unless
        one was set.
        """
        self._config = LabelConfig.parse(payload.get("schema"))
        if not self.key and str(payload.get("hostname", "")).rstrip("/") in (
            "",
            self.url,
        ):
            self.key = str(payload.get("access_token") or "")
        return {"model_version": self.version}

    def predict(self, payload: Json) -> Json:
        """For each task the most probable class, and as its score the position in the
        order of labelling.
        """
        if not isinstance(payload.get("tasks"), list):
            raise ParameterError("predict: `tasks` must be a list.")
        tasks = list(map(LabelTask.parse, payload["tasks"]))
        if payload.get("label_config"):
            self._config = LabelConfig.parse(payload["label_config"])
        config = self._configured()
        self._embed_new(tasks, config)
        suggested = [entry["digest"] for entry in self._pool.suggest(MAX_RANKED)]
        ranks = {
            digest: position / (2 * len(suggested))
            for position, digest in enumerate(suggested)
        }
        # "": unreadable, which come last
        digests = [self._digests.get(task.id, "") for task in tasks]
        best = self._pool.most_probable([digest for digest in digests if digest], 1)
        region, results = (
            {
                "from_name": config.from_name,
                "to_name": config.to_name,
                "type": "choices",
            },
            [],
        )
        for digest in digests:
            result, score = list[Json](), 0.5 if digest else 1.0
            for guess in best.get(digest, ()):
                result = [
                    {
                        **region,
                        "value": {"choices": [guess["label"]]},
                        "score": guess["probability"],
                    }
                ]
                score = 0.5 + guess["probability"] / 2
            results.append(
                {
                    "result": result,
                    "score": ranks.get(digest, score),
                    "model_version": self.version,
                }
            )
        return {"results": results}

    def webhook(self, payload: Json) -> Json:
        """Learn an annotation that was created or changed, and forget one that was
        deleted.
        """
        action = payload.get("action")
        if not isinstance(action, str):
            raise ParameterError("webhook: `action` must be the name of an event.")
        if action in CREATE_EVENTS:
            self._learn(_object(payload.get("annotation"), "annotation"), payload)
        elif action == DELETE_EVENT:
            annotations = _list(payload.get("annotations"), "`annotations`")
            numbers = [
                _id(one if isinstance(one, dict) else {"id": one}, "annotation")
                for one in annotations
            ]
            ids = [self._items.pop(n) for n in numbers if n in self._items]
            self._delete([i for i in ids if i in self.project.history.labelled.items])
        return {"status": "ok", "model_version": self.version}

    def _learn(self, annotation: Json, payload: Json) -> None:
        config = self._configured()
        label = _chosen_label(annotation, config)
        if label is None:
            return
        number = _id(annotation, "annotation")
        task = LabelTask.parse(payload.get("task"))
        raw, row = self._embedded(task, config)
        self._digests[task.id] = self._pool.add(raw, row)
        outcome = self.project.add(raw, row, label, task.name).result(DEADLINE)
        self._items[number] = outcome.id
        # the annotation replaces an earlier one of another class
        self._delete([item.id for item in outcome.others])

    def _delete(self, ids: list[int]) -> None:
        if ids:
            self.project.change({"do": "delete", "ids": ids}).result(DEADLINE)

    def _configured(self) -> LabelConfig:
        if self._config is None:
            raise ParameterError(
                "Label Studio has not sent its labelling configuration: connect the"
                " model first."
            )
        return self._config

    def _embed_new(self, tasks: list[LabelTask], config: LabelConfig) -> None:
        """Fetch and embed the inputs of new tasks; unreadable ones are left out."""
        new = [task for task in tasks if task.id not in self._digests]
        with ThreadPoolExecutor(MAX_FETCHES) as pool:
            futures = [pool.submit(self._embedded, task, config) for task in new]
            # in order: the ranks do not depend on timing
            for task, future in zip(new, futures):
                with suppress(UnreadableInput):
                    self._digests[task.id] = self._pool.add(*future.result())

    def _embedded(self, task: LabelTask, config: LabelConfig) -> tuple[bytes, Array]:
        """The input of a task, which may have to be fetched, and its embedding."""
        value = task.data.get(config.field)
        if not isinstance(value, str):
            raise UnreadableInput(task.name, f"its data have no {config.field!r}")
        raw = (
            value.encode()
            if self.project.modality.typed
            else fetch(value, self.url, self.key)
        )
        return raw, self.project.embed(raw, task.name).result(DEADLINE)


def fetch(address: str, url: str, key: str) -> bytes:
    """The bytes of an image: a data URI, or a file of the Label Studio at `url`; other
    servers are refused.
    """
    name = printable(address, MAX_NAME_LENGTH)
    limit = MAX_BYTES["file"]
    try:
        full = urljoin(url + "/", address)
        is_elsewhere = urlsplit(full)[:2] != urlsplit(url)[:2]
        if is_elsewhere and not address.startswith("data:"):
            raise UnreadableInput(
                name, f"only files of {url} are fetched; set LABEL_STUDIO_URL"
            )
        request = urllib.request.Request(
            full, headers={"Authorization": f"Token {key}"} if key else {}
        )
        with urllib.request.build_opener(_NoRedirect()).open(
            request, timeout=FETCH_SECONDS
        ) as response:
            raw: bytes = response.read(limit + 1)
    # HTTPException: such as an address with control characters
    except (OSError, ValueError, HTTPException) as e:
        is_forbidden = isinstance(e, HTTPError) and e.code in (401, 403)
        if isinstance(e, HTTPError):
            e.close()
        hint = "; set LABEL_STUDIO_API_KEY" if is_forbidden else ""
        reason = printable(first_line(e), MAX_NAME_LENGTH)
        raise UnreadableInput(name, f"{reason}{hint}") from None
    if len(raw) > limit:
        raise UnreadableInput(name, f"larger than {limit >> 20} MB")
    return raw


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows no redirects, which could send the key to another server."""

    def redirect_request(self, *args: Any, **options: Any) -> None:
        return None


def _object(value: Any, what: str) -> Json:
    """The JSON object in a request; anything else is refused."""
    if not isinstance(value, dict):
        raise ParameterError(f"Label Studio: a {what} must be a JSON object.")
    return value


def _list(value: Any, what: str) -> list[Any]:
    """The list in a request, which may be missing; anything else is refused."""
    if value is not None and not isinstance(value, list):
        raise ParameterError(f"Label Studio: {what} must be a list.")
    return value or []


def _id(value: Json, what: str) -> int:
    """The number of a task or an annotation."""
    number = value.get("id")
    if isinstance(number, bool) or not isinstance(number, int):
        raise ParameterError(f"Label Studio: the `id` of a {what} must be an integer.")
    return number


def _chosen_label(annotation: Json, config: LabelConfig) -> str | None:
    """The class that a person chose; None if the annotation has none."""
    results = _list(annotation.get("result"), "`result`")
    regions = [_object(region, "region of `result`") for region in results]
    for region in regions:
        if region.get("from_name") != config.from_name:
            continue
        value = _object(region.get("value") or {}, "region's `value`")
        choices = _list(value.get("choices"), "`choices`")
        if not choices:
            return None
        if not isinstance(choices[0], str):
            raise ParameterError("Label Studio: a choice must be a text.")
        return choices[0]
    return None
