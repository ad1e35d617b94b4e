"""Profile of an inference: each call's time, arithmetic and memory traffic against the machine's limits.

         %    sum   n    median     least  GFLOP/s      MB   GB/s  roof  kernel             layers
      12.3   12.3   2     511.0     510.2     98.1    0.31    0.6   91c  k4_convolution     Conv_12, Relu_13

Times are in microseconds, rates are those of the median. c: arithmetic is the limit, m: memory is. With several threads
the caller's clock is read: a call that other threads finish while the caller is preempted seems short, so least times
mean little.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TypeVar, cast

import numpy as np

from aot.runtime.arrays.tensors import Array
from aot.runtime.inference.agreement import size_at, sizes_of
from aot.runtime.loading.manifest import Manifest
from aot.runtime.measuring.roofline import Roofline
from aot.runtime.model import CompiledModel

MIN_RUNS = 5
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class CallProfile:
    """A call of the model. `work` in FLOP and `traffic` in bytes are None if they depend on data; times are in seconds.

    `percent`: of the time of all calls. `roof`: percent of the machine's limit. `bound`: the resource that sets the
    limit, see Roofline.
    """

    index: int
    kernel: str
    layers: tuple[str, ...]
    least: float
    median: float
    percent: float
    work: int | None
    traffic: int | None
    roof: float | None
    bound: str


@dataclass(frozen=True, slots=True)
class ModelProfile:
    """Seconds of whole inferences through Python, measured without profiling; `calls` by time, longest first.

    `work`: FLOP of an inference, None if they depend on data. `sizes`: the varying sizes at which it was measured.
    `p90`, `p99`: seconds that 90 and 99 percent of inferences do not exceed.
    """

    least: float
    median: float
    runs: int
    work: int | None
    calls: tuple[CallProfile, ...]
    p90: float = 0.0
    p99: float = 0.0
    sizes: Mapping[str, int] = field(default_factory=dict[str, int])


def measure(
    model: CompiledModel, inputs: Mapping[str, Array], seconds: float = 1.0, roofline: Roofline | None = None
) -> ModelProfile:
    """Infer for about `seconds`, half of it with profiling on; UsageError for wrong inputs."""
    request = model.create_infer_request()
    arrays = dict(inputs)
    request.infer(arrays)
    whole = np.array(_repeat(lambda: _timed(lambda: request.infer(arrays)), seconds / 2))
    request.enable_profiling()

    def calls() -> list[float]:
        request.infer(arrays)
        return [call.seconds for call in request.get_profiling_info()]

    times = np.array(_repeat(calls, seconds / 2)).reshape(-1, len(model.manifest.calls))
    infos = [info for info in model.inputs if info.name in arrays]
    sizes = sizes_of(infos, [np.shape(arrays[info.name]) for info in infos])
    rows = call_profiles(model.manifest, times, roofline, sizes)
    work = [row.work for row in rows]
    total = None if None in work else sum(w for w in work if w)
    most = [float(p) for p in np.percentile(whole, (90, 99))]
    least, median, runs = float(whole.min()), float(np.median(whole)), len(whole) + len(times)
    return ModelProfile(least, median, runs, total, tuple(rows), *most, sizes=sizes)


def call_profiles(
    manifest: Manifest, times: Array, roofline: Roofline | None, sizes: Mapping[str, int] | None = None
) -> list[CallProfile]:
    """Return rows from times[inference, call] in seconds, of calls that ran; sorted by median, longest first.

    `sizes`: the varying sizes by name, for work and traffic that depend on them.
    """
    facts = cast(list[Mapping[str, object]], manifest.json["calls"])
    medians, least = np.median(times, axis=0), times.min(axis=0)
    total = float(medians.sum()) or 1.0
    footprint = cast(int, manifest.json.get("weights", 0))
    rows: list[CallProfile] = []
    for i, call in enumerate(manifest.calls):
        if not times[:, i].any():  # belongs to another version, or another branch
            continue
        work, traffic = (size_at(facts[i].get(key), sizes or {}) for key in ("work", "traffic"))
        row = CallProfile(
            i,
            call.kernel,
            call.layers,
            float(least[i]),
            float(medians[i]),
            100 * float(medians[i]) / total,
            work,
            traffic,
            None,
            "",
        )
        rows.append(row if roofline is None else _limited(row, roofline, footprint))
    return sorted(rows, key=lambda row: -row.median)


def table(profile: ModelProfile, top: int | None = None, width: int = 60) -> str:
    """Return the `top` kernels as text, longest first; calls of one kernel are one row with their number `n` and sums.

    Layers are those of the first call, cut to `width`.
    """
    kernels: dict[str, list[CallProfile]] = {}
    for row in profile.calls:
        kernels.setdefault(row.kernel, []).append(row)
    order = sorted(kernels.values(), key=_total, reverse=True)
    head = "     %    sum   n    median     least  GFLOP/s      MB   GB/s  roof  kernel             layers"
    lines, reached = [head], 0.0
    for rows in order[:top]:
        share = sum(row.percent for row in rows)
        reached += share
        lines.append(f"{share:6.1f}{reached:7.1f}{_kernel_line(rows, width)}")
    hidden = len(order) - len(order[:top])
    return "\n".join([*lines, *([f"  and {hidden} more kernels, {100 - reached:.1f} %"] if hidden else [])])


def _total(rows: list[CallProfile]) -> float:
    return sum(row.median for row in rows)


def _kernel_line(rows: list[CallProfile], width: int) -> str:
    least, median = sum(row.least for row in rows), _total(rows)
    work, traffic = [row.work for row in rows], [row.traffic for row in rows]
    spent = max(median, 1e-9)
    rate = "–" if None in work else f"{sum(w for w in work if w) / spent / 1e9:.1f}"
    nbytes = None if None in traffic else sum(t for t in traffic if t)
    size, speed = ("–", "–") if nbytes is None else (f"{nbytes / 1e6:.2f}", f"{nbytes / spent / 1e9:.1f}")
    ideal = sum((row.roof or 0.0) * row.median for row in rows)
    roof = "" if rows[0].roof is None else f"{ideal / spent:.0f}{rows[0].bound}"
    names = ", ".join(rows[0].layers)
    times = f"{len(rows):>4}{median * 1e6:10.1f}{least * 1e6:10.1f}"
    return f"{times}{rate:>9}{size:>8}{speed:>7}{roof:>6}  {rows[0].kernel:<18} {_cut(names, width)}"


def summary(profile: ModelProfile) -> str:
    """Return the profile in one line, measured sizes first."""
    together = sum(row.median for row in profile.calls)
    rate = f", {profile.work / profile.median / 1e9:.1f} GFLOP/s" if profile.work else ""
    most = f"p90 {profile.p90 * 1e3:.3f} ms, p99 {profile.p99 * 1e3:.3f} ms"
    speed = f"{1 / max(profile.median, 1e-9):.4g} inferences/s"
    sizes = f"at {at_sizes(profile.sizes)}, " if profile.sizes else ""
    times = f"{sizes}median {profile.median * 1e3:.3f} ms, {speed}, least {profile.least * 1e3:.3f} ms, {most}{rate}"
    return f"{times}; {len(profile.calls)} calls, together {together * 1e3:.3f} ms; {profile.runs} runs"


def at_sizes(sizes: Mapping[str, int]) -> str:
    """Return varying sizes as `batch=1, seq=16`."""
    return ", ".join(f"{name}={size}" for name, size in sizes.items())


def as_json(profile: ModelProfile) -> dict[str, object]:
    """Return the fields of ModelProfile and CallProfile; times in seconds."""
    return dict[str, object](asdict(profile))


def _limited(row: CallProfile, roofline: Roofline, footprint: int) -> CallProfile:
    if row.work is None or row.traffic is None:
        return row
    ideal, memory = roofline.seconds(row.work, row.traffic, max(footprint, row.traffic))
    return replace(row, roof=100 * ideal / max(row.median, 1e-9), bound="m" if memory else "c")


def _repeat(run: Callable[[], T], seconds: float) -> list[T]:
    end = time.perf_counter() + seconds
    values: list[T] = []
    while len(values) < MIN_RUNS or time.perf_counter() < end:
        values.append(run())
    return values


def _timed(run: Callable[[], object]) -> float:
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
