"""Metrics for Prometheus: requests, durations, batches, queues, examples."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from cptuning.serving.model_registry import ModelRegistry

CONTENT_TYPE = CONTENT_TYPE_LATEST

_SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)
_ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)


class Metrics:
    """The metrics of one server, in Prometheus' text format.

    >>> metrics = Metrics()
    >>> metrics.observe_request("/predict", 200, seconds=0.01)
    >>> 'cptuning_requests_total{route="/predict",status="200"} 1.0' in metrics.text().decode()
    True
    """

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._requests = Counter(
            "cptuning_requests",
            "Requests that were answered.",
            ["route", "status"],
            registry=self._registry,
        )
        self._seconds = Histogram(
            "cptuning_request_seconds",
            "Time from the headers of a request to the end of its answer.",
            ["route"],
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._batches = Histogram(
            "cptuning_batch_rows",
            "Texts per batch.",
            ["model"],
            buckets=_ROWS,
            registry=self._registry,
        )

    def observe_request(self, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        self._requests.labels(route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def observe_batch(self, model: str, rows: int) -> None:
        """Count a batch."""
        self._batches.labels(model).observe(rows)

    def watch(self, registry: "ModelRegistry") -> None:
        """Report the state of the models as well, at the time of each scrape."""
        self._registry.register(_ModelCollector(registry))

    def text(self) -> bytes:
        """All metrics."""
        return generate_latest(self._registry)


class _ModelCollector(Collector):
    """Gauges that are read from the models when they are scraped."""

    def __init__(self, registry: "ModelRegistry") -> None:
        self._registry = registry

    def collect(self) -> Iterable[Metric]:
        """The queue length and the number of examples of each model."""
        queues = GaugeMetricFamily(
            "cptuning_queue_rows", "Texts that are waiting.", labels=["model"]
        )
        examples = GaugeMetricFamily(
            "cptuning_examples", "Labelled examples that the model compares with.", labels=["model"]
        )
        for name, worker in self._registry:
            queues.add_metric([name], worker.queued_rows)
            examples.add_metric([name], worker.model.n_examples or 0)
        return [queues, examples]
