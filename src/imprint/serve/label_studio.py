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
from typing import Any, NamedTuple
from urllib.parse import urljoin, urlsplit
from xml.etree import ElementTree

from starlette.routing import Route

from imprint.core.arrays import Array
from imprint.core.errors import ParameterError, UnreadableInput
from imprint.serve.project import Project
from imprint.serve.requests import DEADLINE, MAX_BYTES, Endpoints, json_object
from imprint.serve.unlabelled import LabellingPool

Json = dict[str, Any]
FETCH_SECONDS = 30.0  # maximum time to fetch a picture
# maximum number of pictures that are fetched and decoded at the same time
MAX_FETCHES = 16
# number of tasks that are ranked; the others follow, those with the least probable
# prediction first
MAX_RANKED = 500
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
            root = ElementTree.fromstring(str(xml))
            choices = next(root.iter("Choices"))
            shown = {
                e.get("name", ""): e.get("value", "")
                for e in root.iter()
                if e.tag in ("Image", "Text")
            }
            target = choices.attrib["toName"]
            return cls(choices.attrib["name"], target, shown[target].removeprefix("$"))
        except (ElementTree.ParseError, StopIteration, KeyError):
            raise ParameterError(
                "The labelling configuration must have <Choices> for an <Image> or"
                " <Text>."
            ) from None


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
        """Store the labelling configuration, and the key for fetching pictures unless
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
        tasks = payload.get("tasks")
        if not isinstance(tasks, list):
            raise ParameterError("predict: `tasks` must be a list.")
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
        digests = [self._digests.get(int(task["id"]), "") for task in tasks]
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
        if action in CREATE_EVENTS:
            self._learn(payload.get("annotation") or {}, payload.get("task") or {})
        elif action == DELETE_EVENT:
            numbers = [
                a.get("id") if isinstance(a, dict) else a
                for a in payload.get("annotations") or []
            ]
            ids = [self._items.pop(n) for n in numbers if n in self._items]
            self._delete([i for i in ids if i in self.project.history.labelled.items])
        return {"status": "ok", "model_version": self.version}

    def _learn(self, annotation: Json, task: Json) -> None:
        config = self._configured()
        regions = [
            r
            for r in annotation.get("result") or []
            if r.get("from_name") == config.from_name
        ]
        chosen = regions[0].get("value", {}).get("choices") if regions else None
        if not chosen:
            return
        raw, row = self._embedded(task, config)
        self._digests[int(task["id"])] = self._pool.add(raw, row)
        outcome = self.project.add(raw, row, str(chosen[0]), _name(task)).result(
            DEADLINE
        )
        self._items[int(annotation.get("id") or 0)] = outcome.id
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

    def _embed_new(self, tasks: list[Any], config: LabelConfig) -> None:
        """Fetch and embed the inputs of new tasks; unreadable ones are left out."""
        new = [task for task in tasks if int(task["id"]) not in self._digests]
        with ThreadPoolExecutor(MAX_FETCHES) as pool:
            futures = [pool.submit(self._embedded, task, config) for task in new]
            # in order: the ranks do not depend on timing
            for task, future in zip(new, futures):
                with suppress(UnreadableInput):
                    self._digests[int(task["id"])] = self._pool.add(*future.result())

    def _embedded(self, task: Json, config: LabelConfig) -> tuple[bytes, Array]:
        """The input of a task, which may have to be fetched, and its embedding."""
        value = (task.get("data") or {}).get(config.field)
        if not isinstance(value, str):
            raise UnreadableInput(_name(task), f"its data have no {config.field!r}")
        raw = (
            value.encode()
            if self.project.modality.typed
            else fetch(value, self.url, self.key)
        )
        return raw, self.project.embed(raw, _name(task)).result(DEADLINE)


def fetch(address: str, url: str, key: str) -> bytes:
    """The bytes of a picture: a data URI, or a file of the Label Studio at `url`; other
    servers are refused.
    """
    full, limit = urljoin(url + "/", address), MAX_BYTES["file"]
    if not address.startswith("data:") and urlsplit(full)[:2] != urlsplit(url)[:2]:
        raise UnreadableInput(
            address[:200], f"only files of {url} are fetched; set LABEL_STUDIO_URL"
        )
    request = urllib.request.Request(
        full, headers={"Authorization": f"Token {key}"} if key else {}
    )
    try:
        with urllib.request.build_opener(_NoRedirect()).open(
            request, timeout=FETCH_SECONDS
        ) as response:
            raw: bytes = response.read(limit + 1)
    except (OSError, ValueError) as e:
        hint = (
            "; set LABEL_STUDIO_API_KEY"
            if getattr(e, "code", None) in (401, 403)
            else ""
        )
        raise UnreadableInput(address[:200], f"{e}{hint}") from None
    if len(raw) > limit:
        raise UnreadableInput(address[:200], f"larger than {limit >> 20} MB")
    return raw


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows no redirects, which could send the key to another server."""

    def redirect_request(self, *args: Any, **options: Any) -> None:
        return None


def _name(task: Json) -> str:
    return f"task {task.get('id')}"
