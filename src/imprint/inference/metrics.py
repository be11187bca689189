"""Metrics for Prometheus."""

from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import choose_encoder

from imprint.inference.records import RequestRecord
from imprint.inference.repository import LoadedModel

# Seconds: the answer of a small model takes about 5 ms, and the deadline is a minute.
LATENCY_BUCKETS = (
    *(0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5),
    *(1.0, 2.0, 5.0, 10.0, 30.0, 60.0),
)
BATCH_BUCKETS = (1, 2, 4, 8, 16, 32, 64)
# classes that have no time series of their own, see `LoadedModel.counted`
OTHER_CLASSES = "(other classes)"
NO_CLASS = "(none of these)"


class Metrics:
    """The counters of one server."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = self._make(
            Counter,
            "imprint_requests",
            "Answered requests.",
            ("endpoint", "model", "status"),
        )
        self.seconds = self._make(
            Histogram,
            "imprint_request_seconds",
            "Time from the header of a request to its answer.",
            ("endpoint", "model"),
            buckets=LATENCY_BUCKETS,
        )
        self.waited = self._make(
            Histogram,
            "imprint_wait_seconds",
            "Time that an input waits for the network.",
            ("model",),
            buckets=LATENCY_BUCKETS,
        )
        self.batches = self._make(
            Histogram,
            "imprint_batch_inputs",
            "Inputs in one pass of a network.",
            (),
            buckets=BATCH_BUCKETS,
        )
        self.queue = self._make(
            Gauge, "imprint_queue_inputs", "Inputs that wait or are being answered.", ()
        )
        self.predicted = self._make(
            Counter,
            "imprint_predictions",
            "Predictions of each class.",
            ("model", "label"),
        )
        self.unknown = self._make(
            Counter,
            "imprint_unknown",
            "Inputs whose p-value `known` is below 0.05.",
            ("model",),
        )
        self.drift = self._make(
            Gauge,
            "imprint_drift_evidence",
            "Evidence that inputs look unlike the training data, 20 or more: an alarm.",
            ("model",),
        )
        self.versions = self._make(
            Gauge, "imprint_model_info", "The loaded version.", ("model", "version")
        )
        self.reloads = self._make(
            Counter,
            "imprint_model_reloads",
            "Replaced model files.",
            ("model", "outcome"),
        )

    def _make(
        self, kind: type, name: str, meaning: str, labels: tuple[str, ...], **more: Any
    ) -> Any:
        return kind(name, meaning, labels, registry=self.registry, **more)

    def observe(self, record: RequestRecord, seconds: float) -> None:
        """Count an answered request."""
        status = str(record.status)
        self.requests.labels(record.endpoint, record.model, status).inc()
        self.seconds.labels(record.endpoint, record.model).observe(seconds)

    def count_predictions(
        self, model: LoadedModel, predictions: list[dict[str, Any]]
    ) -> None:
        """Count the predicted classes and the inputs that look unlike the training
        data.
        """
        for prediction in predictions:
            label = prediction["label"]
            name = NO_CLASS if label is None else str(label)
            if name not in model.counted and label is not None:
                name = OTHER_CLASSES
            self.predicted.labels(model.name, name).inc()
            self.unknown.labels(model.name).inc(_is_unknown(prediction))

    def show_version(self, model: LoadedModel) -> None:
        """State the version of a model that was loaded, instead of the one before."""
        for labels in list(self.versions._metrics):
            if labels[0] == model.name:
                self.versions.remove(*labels)
        self.versions.labels(model.name, model.version).set(1)

    def expose(self, accepted: str) -> tuple[bytes, str]:
        """All metrics as text, and the media type of that text, for the `Accept` header
        of a request.
        """
        encode, media_type = choose_encoder(accepted)
        return encode(self.registry), media_type


# the usual threshold: about 5 % of inputs that belong to a class are below it
# (measured: 4 to 6 % of inputs like the training data, 1 to 19 % of others)
UNKNOWN_P_VALUE = 0.05


def _is_unknown(prediction: dict[str, Any]) -> bool:
    known = prediction["known"]
    return known is not None and known < UNKNOWN_P_VALUE
