"""Results as a table and as JSON."""

from __future__ import annotations

import math
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

REPORT_VERSION = 1  # raised with every change that an older reader would misread
Row = dict[str, object]


def number(row: Row, key: str) -> float:
    """The value of a measured row; NaN if it was not measured."""
    value = row.get(key)
    return float(value) if isinstance(value, int | float) else math.nan


def spread(values: list[float]) -> dict[str, float]:
    """Median, 10th and 90th percentile."""
    low, middle, high = np.percentile(values, [10, 50, 90])
    return {"median": float(middle), "p10": float(low), "p90": float(high)}


def machine() -> Row:
    """Processor, cores this process may use, versions."""
    names = ("numpy", "llvmlite", "openvino", "onnxruntime")
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "system": platform.platform(),
        "load": list(os.getloadavg()),
        **{name: _version(name) for name in names},
    }


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return platform.processor()
    facts = dict(line.split(":", 1) for line in text.split("\n\n")[0].splitlines() if ":" in line)
    plain = {key.strip(): value.strip() for key, value in facts.items()}
    flags = set(plain.get("flags", "").split())
    wide = "AVX-512" if "avx512f" in flags else "AVX2" if "avx2" in flags else ""
    numbers = f"family {plain.get('cpu family', '?')} model {plain.get('model', '?')}"
    return f"{plain.get('model name', platform.processor())} ({numbers}) {wide}".strip()


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def geometric_mean(rows: list[Row], threads: int) -> float:
    """Of the median ratios at so many threads; NaN without any."""
    found = [number(r, "ratio") for r in rows if r["threads"] == threads]
    found = [x for x in found if not math.isnan(x)]
    return math.exp(sum(map(math.log, found)) / len(found)) if found else math.nan


def markdown(rows: list[Row], as_installed: bool = False) -> str:
    """Three tables: times and ratios, starting, compiling."""
    parts = [
        _table(INSTALLED if as_installed else SPEED, rows),
        _table(STARTING, rows),
        _table(COMPILING, [r for r in rows if "compile_s" in r]),
    ]
    for threads in sorted({int(number(r, "threads")) for r in rows}):
        mean = geometric_mean(rows, threads)
        worst = [r for r in rows if r["threads"] == threads and number(r, "ratio") < 1]
        names = ", ".join(str(r["model"]) for r in worst) or "none"
        count = f"{threads} thread{'s' * (threads > 1)}"
        parts.append(f"{count}: geometric mean of the ratios {mean:.2f}; below 1: {names}")
    failed = [f"- {r['model']}, {r['threads']}T: {error}" for r in rows for error in _errors(r)]
    return "\n\n".join([*parts, *(["Failed:\n" + "\n".join(failed)] if failed else [])]) + "\n"


def _errors(row: Row) -> list[str]:
    errors = row.get("failed")
    return [str(e) for e in errors] if isinstance(errors, list) else []


def _table(columns: tuple[tuple[str, str, str], ...], rows: list[Row]) -> str:
    lines = ["| " + " | ".join(title for title, _, _ in columns) + " |", "|--" * len(columns) + "|"]
    lines += ["| " + " | ".join(_cell(row, key, form) for _, key, form in columns) + " |" for row in rows]
    return "\n".join(lines)


def _cell(row: Row, key: str, form: str) -> str:
    keys = key.split()
    values = [row.get(k) for k in keys]
    if values[0] is None:
        return "–"
    return form.format(*(math.nan if v is None else v for v in values))


_MS = "{:.3g} ({:.3g})"
# heading, keys of the row, format
SPEED = (
    ("model", "model", "{}"),
    ("T", "threads", "{}"),
    ("GFLOP", "gflop", "{:.3g}"),
    ("ours ms", "ours_min_ms ours_median_ms", _MS),
    ("OpenVINO ms", "openvino_min_ms openvino_median_ms", _MS),
    ("ONNX Runtime ms", "onnxruntime_min_ms onnxruntime_median_ms", _MS),
    ("best peer / ours", "ratio", "**{:.2f}**"),
    ("10–90 %", "ratio_p10 ratio_p90", "{:.2f}–{:.2f}"),
    ("by CPU time", "cpu_ratio", "{:.2f}"),
    ("GFLOP/s", "gflops", "{:.1f}"),
    ("% of peak", "percent_of_peak", "{:.0f}"),
    ("error", "ours_error", "{:.1e}"),
)
INSTALLED = (
    ("model", "model", "{}"),
    ("T", "threads", "{}"),
    ("ours, CPU ms", "ours_cpu_ms", "{:.3g}"),
    ("OpenVINO", "openvino_cpu_ms", "{:.3g}"),
    ("ONNX Runtime", "onnxruntime_cpu_ms", "{:.3g}"),
    ("best peer / ours", "ratio", "**{:.2f}**"),
    ("10–90 %", "ratio_p10 ratio_p90", "{:.2f}–{:.2f}"),
    ("by CPU time", "cpu_ratio", "**{:.2f}**"),
    ("error of ours", "ours_error", "{:.1e}"),
    ("of OpenVINO", "openvino_error", "{:.1e}"),
    ("of ONNX Runtime", "onnxruntime_error", "{:.1e}"),
)
STARTING = (
    ("model", "model", "{}"),
    ("T", "threads", "{}"),
    ("ours load + first ms", "ours_load_ms ours_first_ms", "{:.1f} + {:.1f}"),
    ("OpenVINO", "openvino_load_ms openvino_first_ms", "{:.0f} + {:.1f}"),
    ("ONNX Runtime", "onnxruntime_load_ms onnxruntime_first_ms", "{:.0f} + {:.1f}"),
    ("ours start to first s", "ours_start_s", "{:.2f}"),
    ("OpenVINO s", "openvino_start_s", "{:.2f}"),
    ("ONNX Runtime s", "onnxruntime_start_s", "{:.2f}"),
    ("ours RSS MB", "ours_rss_mb", "{:.0f}"),
    ("OpenVINO MB", "openvino_rss_mb", "{:.0f}"),
    ("ONNX Runtime MB", "onnxruntime_rss_mb", "{:.0f}"),
)
COMPILING = (
    ("model", "model", "{}"),
    ("compile s", "compile_s", "{:.2f}"),
    ("compile peak MB", "compile_rss_mb", "{:.0f}"),
    (".so MB", "so_mb", "{:.1f}"),
    ("model.bin MB", "weights_mb", "{:.1f}"),
)
