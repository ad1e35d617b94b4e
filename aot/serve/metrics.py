"""Figures of a server for Prometheus, and for the protocol's statistics."""

from __future__ import annotations

import os
import time
from dataclasses import field

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.gc_collector import GCCollector
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.process_collector import ProcessCollector

from aot.codegen.dataclass import dataclass
from aot.serve.workers import SHARED_METRICS

_SECONDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(slots=True)
class Times:
    """Moments of a request, in seconds of `time.monotonic`."""

    arrived: float = field(default_factory=time.monotonic)
    begun: float = 0.0
    ended: float = 0.0

    def begin(self, now: float) -> None:
        """Record the start time of the inference."""
        self.begun = now

    def end(self, now: float) -> None:
        """Record the end time of the inference."""
        self.ended = now

    @property
    def queued(self) -> float:
        """Seconds in the queue."""
        return max(0.0, self.begun - self.arrived)

    @property
    def computed(self) -> float:
        """Seconds of its inference."""
        return max(0.0, self.ended - self.begun)


class Metrics:
    """All figures of a server, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        GCCollector(registry=self.registry)
        names, to = ("model", "version"), self.registry
        self.requests = Counter(
            "aot_requests", "Requests by outcome, an HTTP status", (*names, "code"), registry=self.registry
        )

        def times(name: str, text: str) -> Histogram:
            return Histogram(f"aot_{name}_seconds", text, names, registry=to, buckets=_SECONDS)

        self.seconds = times("request", "Time from a request's header to its answer")
        self.queue_seconds = times("queue", "Time that requests wait for their inference")
        self.infer_seconds = times("inference", "Time of one inference, of a batch too")
        self.rows = Histogram("aot_batch_rows", "Rows of one inference", names, registry=to, buckets=_ROWS)
        self.waiting = Gauge("aot_queue_length", "Requests that wait", names, registry=to, multiprocess_mode="livesum")
        self.loaded = Gauge(
            "aot_loaded_models", "Versions of models that are loaded", registry=to, multiprocess_mode="livemax"
        )
        self._models: dict[tuple[str, str], ModelMetrics] = {}

    def of(self, name: str, version: str) -> ModelMetrics:
        """Return the figures of a version of a model; a reload goes on with them."""
        return self._models.setdefault((name, version), ModelMetrics(self, name, version))

    def forget(self, name: str, version: str) -> None:
        """Remove the figures of a version that is no longer served."""
        metrics = self._models.pop((name, version), None)
        if metrics is not None:
            metrics.remove(self)

    def text(self) -> bytes:
        """Return all figures in Prometheus' text format."""
        if SHARED_METRICS not in os.environ:
            return generate_latest(self.registry)
        shared = CollectorRegistry()
        MultiProcessCollector(shared)
        return generate_latest(shared)


class ModelMetrics:
    """Figures of one version of a model."""

    def __init__(self, to: Metrics, name: str, version: str) -> None:
        self._labels = (name, version)
        self._requests = to.requests
        self._seconds = to.seconds.labels(name, version)
        self._queue_seconds = to.queue_seconds.labels(name, version)
        self._infer_seconds = to.infer_seconds.labels(name, version)
        self._rows = to.rows.labels(name, version)
        self.waiting = to.waiting.labels(name, version)
        self._codes: set[str] = set()
        self._is_removed = False
        self.successes, self.failures, self.executions, self.inferences = 0, 0, 0, 0
        self.success_seconds, self.fail_seconds, self.queue, self.compute = 0.0, 0.0, 0.0, 0.0
        self.last = 0  # milliseconds since the epoch

    def batch(self, rows: int, seconds: float) -> None:
        """Count one inference; called from the threads of the executor."""
        self._rows.observe(rows)
        self._infer_seconds.observe(seconds)
        self.executions += 1
        self.inferences += rows

    def answered(self, code: int, seconds: float, times: Times | None) -> None:
        """Count one request, with the status that it got."""
        if self._is_removed:  # the last requests of a version that is gone
            return
        self._codes.add(str(code))
        self._requests.labels(*self._labels, str(code)).inc()
        self._seconds.observe(seconds)
        if times is None:
            self.failures += 1
            self.fail_seconds += seconds
            return
        self._queue_seconds.observe(times.queued)
        self.successes += 1
        self.success_seconds += seconds
        self.queue += times.queued
        self.compute += times.computed
        self.last = int(time.time() * 1e3)

    def remove(self, to: Metrics) -> None:
        """Take the series out of the registry."""
        self._is_removed = True
        if SHARED_METRICS in os.environ:  # other processes may count for it still
            return
        for code in self._codes:
            to.requests.remove(*self._labels, code)
        for series in (to.seconds, to.queue_seconds, to.infer_seconds, to.rows, to.waiting):
            series.remove(*self._labels)

    def statistics(self) -> dict[str, object]:
        """Return the figures as the protocol's statistics extension names them; times are in nanoseconds."""
        queue, compute = _duration(self.successes, self.queue), _duration(self.successes, self.compute)
        nothing = _duration(self.successes, 0.0)
        parts = {"queue": queue, "compute_input": nothing, "compute_infer": compute, "compute_output": nothing}
        outcome = {
            "success": _duration(self.successes, self.success_seconds),
            "fail": _duration(self.failures, self.fail_seconds),
        }
        return {
            "name": self._labels[0],
            "version": self._labels[1],
            "last_inference": self.last,
            "inference_count": self.inferences,
            "execution_count": self.executions,
            "inference_stats": {**outcome, **parts},
            "batch_stats": [],
        }


def _duration(count: int, seconds: float) -> dict[str, int]:
    return {"count": count, "ns": int(seconds * 1e9)}
