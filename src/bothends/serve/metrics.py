"""What a server counts, for Prometheus. Labels are routes, statuses and reasons: never users."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from bothends.serve.batching import BatchRecord

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60)
_LINES = (1, 2, 4, 8, 16, 32, 64, 128)


class Metrics:
    """The figures of one server; a process may have several."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._children: dict[tuple[int, tuple[str, ...]], Any] = {}
        self.requests = self._counter("requests", "Answers by route and status.", "route", "status")
        self.refused = self._counter("refused", "Requests refused by reason.", "reason")
        self.abandoned = self._counter("abandoned", "Requests whose client went away.")
        self.lines = self._counter("lines", "Sentences translated.", "model")
        self.steps = self._counter("steps", "Decoder steps of the best hypotheses.", "model")
        self.latency = self._histogram(
            "request_seconds",
            "From the headers of a request to the end of its answer.",
            _SECONDS,
            "route",
        )
        self.batch_lines = self._histogram("batch_lines", "Sentences of a batch.", _LINES)
        self.batch_seconds = self._histogram("batch_seconds", "Time of a batch.", _SECONDS)

    def watch(self, name: str, text: str, value: Callable[[], float]) -> None:
        """A gauge that is read when it is asked for."""
        Gauge(f"bothends_{name}", text, registry=self.registry).set_function(value)

    def answered(self, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        self._child(self.requests, route, str(status)).inc()
        self._child(self.latency, route).observe(seconds)

    def refuse(self) -> None:
        """Count a request that the waiting room has no place for."""
        self._child(self.refused, "busy").inc()

    def translated(self, model: str, lines: int, steps: int) -> None:
        """Count sentences."""
        self._child(self.lines, model).inc(lines)
        self._child(self.steps, model).inc(steps)

    def _child(self, metric: Any, *labels: str) -> Any:
        """A metric with its labels; to look it up each time takes longer than to count."""
        key = (id(metric), labels)
        if key not in self._children:
            self._children[key] = metric.labels(*labels)
        return self._children[key]

    def observe_batch(self, record: BatchRecord) -> None:
        self.batch_lines.observe(record.items)
        self.batch_seconds.observe(record.seconds)

    def render(self) -> bytes:
        return generate_latest(self.registry)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"bothends_{name}", text, labels, registry=self.registry)

    def _histogram(
        self, name: str, text: str, buckets: tuple[float, ...], *labels: str
    ) -> Histogram:
        return Histogram(f"bothends_{name}", text, labels, buckets=buckets, registry=self.registry)
