"""From the inputs of a request to answers: preparation in threads, batches across
requests, limits.
"""

import asyncio
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from imprint.backbones.backbone import thread_count
from imprint.core.errors import ImprintError, ParameterError, UnreadableInput
from imprint.core.memory import DecodingBudget
from imprint.imprinter.items import BLANK_REASON
from imprint.inference.batching import Answer, PredictOptions
from imprint.inference.limits import (
    Admission,
    BusyError,
    Limits,
    TooLargeError,
)
from imprint.inference.metrics import Metrics
from imprint.inference.records import AccessLog, RequestRecord
from imprint.inference.repository import LoadedModel, ModelRepository


class Service:
    """What the endpoints share."""

    def __init__(
        self,
        repository: ModelRepository,
        metrics: Metrics,
        log: AccessLog,
        limits: Limits | None = None,
        options: PredictOptions | None = None,
        threads: int | None = None,
    ):
        self.repository = repository
        self.metrics = metrics
        self.log = log
        self.limits = limits or Limits()
        self.options = options or PredictOptions()
        self.admission = Admission(self.limits)
        # decoding on more threads than cores makes every input wait longer
        self._pool = ThreadPoolExecutor(thread_count(threads), "prepare")
        self._pixels = DecodingBudget(self.limits.pixels)
        repository.report = self.reloaded
        metrics.queue.set_function(lambda: self.admission.inputs)
        for model in repository.models.values():
            metrics.show_version(model)

    def close(self) -> None:
        """Stop the threads, after they have answered what waits."""
        self._pool.shutdown()
        self.repository.close()

    def reloaded(self, name: str, error: ImprintError | None) -> None:
        """Log and count a model file that was replaced."""
        if error is not None:
            self.metrics.reloads.labels(name, "failed").inc()
            self.log.event("reload-failed", model=name, error=str(error))
            return
        model = self.repository[name]
        self.metrics.reloads.labels(name, "loaded").inc()
        self.metrics.show_version(model)
        self.log.event("reloaded", model=name, version=model.version)

    def check(self, model: LoadedModel, options: PredictOptions) -> None:
        """Refuse options that a model cannot honour, before any work is done."""
        if options.level is not None:
            model.head.tree().level(options.level)
        if options.unknown is not None and not model.head.calibrated:
            # raises the error that says why
            model.head.calibration  # noqa: B018

    async def predict(
        self,
        record: RequestRecord,
        model: LoadedModel,
        inputs: Sequence[tuple[str, Any]],
        options: PredictOptions,
    ) -> list[Answer]:
        """The answers for named inputs: `bytes` of files, texts, or arrays."""
        record.inputs = len(inputs)
        if not inputs:
            raise ParameterError("The request has no inputs.")
        if len(inputs) > self.limits.inputs:
            raise TooLargeError(
                f"The request has {len(inputs):,} inputs; the maximum is"
                f" {self.limits.inputs:,}."
            )
        self.check(model, options)
        with self.admission.room(inputs=len(inputs)):
            answers = await self._in_time(
                [
                    self._answer(record, model, name, item, options)
                    for name, item in inputs
                ]
            )
        record.waited_seconds = max(answer.waited for answer in answers)
        record.network_seconds = max(answer.computed for answer in answers)
        self._observe(model, answers)
        return answers

    async def _in_time(self, answering: list[Any]) -> list[Answer]:
        """All answers; at the deadline, inputs that still wait are dropped."""
        tasks: list[Any] = []
        try:
            async with asyncio.timeout(self.limits.seconds):
                if len(answering) == 1:
                    return [await answering[0]]
                tasks = [asyncio.ensure_future(one) for one in answering]
                return await asyncio.gather(*tasks)
        except TimeoutError:
            raise BusyError(
                f"There was no answer within {self.limits.seconds:g} seconds; try again"
                " later.",
                503,
                self.admission.retry_after(),
            ) from None
        finally:
            for task in tasks:
                task.cancel()

    async def _answer(
        self,
        record: RequestRecord,
        model: LoadedModel,
        name: str,
        item: Any,
        options: PredictOptions,
    ) -> Answer:
        started = time.perf_counter()
        if isinstance(item, str) or not model.kind.needs_backbone:
            prepared = self._prepare(model, name, item)  # takes microseconds
        else:
            loop = asyncio.get_running_loop()
            prepared = await loop.run_in_executor(
                self._pool, self._prepare, model, name, item
            )
        seconds = time.perf_counter() - started
        record.prepared_seconds = max(record.prepared_seconds, seconds)
        future = model.network.submit(model.head, prepared, name, options)
        return await asyncio.wrap_future(future)

    def _prepare(self, model: LoadedModel, name: str, item: Any) -> Any:
        try:
            if isinstance(item, str) and not item.strip():
                raise UnreadableInput(name, BLANK_REASON)
            pixels = model.kind.pixels(item) if isinstance(item, bytes) else 0
            if pixels > self.limits.pixels:
                raise TooLargeError(
                    f"{name} has {pixels:,} pixels; the maximum is"
                    f" {self.limits.pixels:,}."
                )
            with self._pixels.holding():
                self._pixels.take(pixels)
                return model.prepare(item)
        except UnreadableInput as e:
            raise UnreadableInput(name, e.reason) from None

    def _observe(self, model: LoadedModel, answers: Sequence[Answer]) -> None:
        predictions = [answer.prediction for answer in answers]
        self.metrics.count_predictions(model, predictions)
        for answer in answers:
            self.metrics.waited.labels(model.name).observe(answer.waited)
        if model.drift is None:
            return
        for prediction in predictions:
            model.drift.observe(prediction["known"], prediction["path"])
        self.metrics.drift.labels(model.name).set(model.drift.evidence)
