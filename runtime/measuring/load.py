"""Latency and throughput of a model under load: several requests at once, each infers again as soon as it is done.

requests 4: 512.3 inferences/s; p50 7.71, p90 8.02, p99 11.40, longest 13.12 ms; 5.1 mJ an inference
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Barrier

import numpy as np

from aot.runtime.arrays.tensors import Array
from aot.runtime.inference.request import InferRequest
from aot.runtime.model import CompiledModel

PERCENTILES = (50, 90, 95, 99)
ROUNDS = 4  # rounds of several models in turn
POWER = Path("/sys/class/powercap")
_US = 1e6

Json = dict[str, object]


@dataclass(frozen=True, slots=True)
class Span:
    """An inference, or with `call` one of its kernel calls, of a request; begin in seconds of `time.monotonic`."""

    request: int
    begin: float
    seconds: float
    call: int = -1


@dataclass(frozen=True, slots=True)
class Load:
    """Seconds of each inference of `requests` at once, the seconds that all of them took, and joules if known."""

    requests: int
    times: Array
    seconds: float
    joules: float | None = None
    spans: tuple[Span, ...] = ()

    @property
    def throughput(self) -> float:
        """Inferences a second."""
        return len(self.times) / max(self.seconds, 1e-9)

    def percentile(self, share: float) -> float:
        """Return the seconds that `share` percent of inferences do not exceed."""
        return float(np.percentile(self.times, share))

    def __str__(self) -> str:
        parts = ", ".join(f"p{p} {self.percentile(p) * 1e3:.3f}" for p in PERCENTILES)
        energy = "" if self.joules is None else f"; {self.joules / len(self.times) * 1e3:.3g} mJ an inference"
        longest = f"longest {float(self.times.max()) * 1e3:.3f} ms"
        return f"requests {self.requests}: {self.throughput:.1f} inferences/s; {parts}, {longest}{energy}"

    def as_json(self) -> Json:
        """Return the fields; `percentiles` and `longest` in seconds, `energy` in joules an inference."""
        return {
            "requests": self.requests,
            "inferences": len(self.times),
            "seconds": self.seconds,
            "throughput": self.throughput,
            "percentiles": {f"p{p}": self.percentile(p) for p in PERCENTILES},
            "longest": float(self.times.max()),
            "energy": None if self.joules is None else self.joules / len(self.times),
        }


def loads(
    models: Sequence[tuple[CompiledModel, Mapping[str, Array]]], seconds: float, requests: int, traced: bool = False
) -> list[Load]:
    """Measure models with their inputs, for about `seconds` each; they take turns, so that all see the same machine."""
    runners = [_Runner(model, inputs, requests, traced) for model, inputs in models]
    parts = [[runner.run(seconds / ROUNDS) for runner in runners] for _ in range(ROUNDS)]
    return [_joined([part[n] for part in parts]) for n in range(len(runners))]


def trace(named: Sequence[tuple[str, CompiledModel, Load]]) -> Json:
    """Return the spans as a trace for Perfetto and Chrome: a process for each model, a thread for each request."""
    begin = min((s.begin for _, _, load in named for s in load.spans), default=0.0)
    events: list[Json] = []
    for process, (name, model, load) in enumerate(named):
        events.append({"ph": "M", "name": "process_name", "pid": process, "args": {"name": name}})
        calls = model.manifest.calls
        for n in range(load.requests):
            named_thread: Json = {"ph": "M", "name": "thread_name", "pid": process, "tid": n}
            events.append(named_thread | {"args": {"name": f"request {n}"}})
        for s in load.spans:
            span: Json = {"ph": "X", "pid": process, "tid": s.request, "ts": (s.begin - begin) * _US}
            what: Json = {"name": model.name, "cat": "inference"}
            if s.call >= 0:
                what = {"name": calls[s.call].kernel, "cat": "kernel", "args": {"layers": list(calls[s.call].layers)}}
            events.append(span | {"dur": s.seconds * _US} | what)
    return {"traceEvents": events, "displayTimeUnit": "ns"}


def joules(folder: Path = POWER) -> float | None:
    """Return the energy that the processors have used since some time, by RAPL; None if it cannot be read."""
    try:
        packages = sorted(p for p in folder.glob("intel-rapl:*") if p.name.count(":") == 1)
        used = [int((p / "energy_uj").read_text(encoding="ascii")) for p in packages]
    except (OSError, ValueError):
        return None
    return sum(used) / _US if used else None


class _Runner:
    """Requests of a model, each with a thread of its own."""

    def __init__(self, model: CompiledModel, inputs: Mapping[str, Array], requests: int, traced: bool) -> None:
        self.inputs, self.traced = dict(inputs), traced
        self.requests = [model.create_infer_request() for _ in range(requests)]
        for request in self.requests:
            request.infer(self.inputs)
            request.enable_profiling(traced)

    def run(self, seconds: float) -> Load:
        """Infer for `seconds`, and at least once with each request."""
        start = Barrier(len(self.requests))
        before, begin = joules(), time.monotonic()
        if len(self.requests) == 1:
            runs = [self._repeat(0, seconds, start.wait)]
        else:
            with ThreadPoolExecutor(len(self.requests)) as threads:
                jobs = [threads.submit(self._repeat, n, seconds, start.wait) for n in range(len(self.requests))]
                runs = [job.result() for job in jobs]
        spent, after = time.monotonic() - begin, joules()
        spans = tuple(span for part in runs for span in part)
        times = np.array([span.seconds for span in spans if span.call < 0])
        used = None if before is None or after is None or after < before else after - before  # the counter wraps
        return Load(len(self.requests), times, spent, used, spans if self.traced else ())

    def _repeat(self, number: int, seconds: float, wait: Callable[[], int]) -> list[Span]:
        request, spans = self.requests[number], list[Span]()
        wait()
        end = time.monotonic() + seconds
        while True:
            begin = time.monotonic()
            request.infer(self.inputs)
            now = time.monotonic()
            spans.append(Span(number, begin, now - begin))
            if self.traced:
                spans += _calls(request, number, begin)
            if now >= end:
                return spans


def _calls(request: InferRequest, number: int, since: float) -> list[Span]:
    """Return the calls of the last inference, which began at `since`; those of branches not taken are older."""
    info = request.get_profiling_info()
    return [Span(number, c.begin, c.seconds, n) for n, c in enumerate(info) if c.begin >= since and c.seconds > 0]


def _joined(parts: Sequence[Load]) -> Load:
    used = [part.joules for part in parts]
    total = None if None in used else sum(one for one in used if one is not None)
    spans = tuple(span for part in parts for span in part.spans)
    times = np.concatenate([part.times for part in parts])
    return Load(parts[0].requests, times, sum(part.seconds for part in parts), total, spans)
