"""TensorFlow Lite files against LiteRT: `python -m benchmarks.tflite MODEL.tflite... [--threads 1,2] [--seconds 1]`.

Both run in one process, in turn, on the same inputs, which are NumPy arrays, as results are; times are least ones by
the clock. Needs the package ai-edge-litert. `--libraries FOLDER` keeps what is compiled; what is there is used, and the
compiler is not needed then.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from ai_edge_litert.interpreter import Interpreter

import runtime
from benchmarks.compilation.compiling import compile_apart

Array = np.ndarray[Any, np.dtype[Any]]
Run = Callable[[], list[Array]]


def inputs_of(interpreter: Any) -> list[Array]:
    """Random inputs, in the order of the file: floats of 0 to 1, all bytes."""
    rng = np.random.default_rng(0)
    found: list[Array] = []
    for info in interpreter.get_input_details():
        dtype = np.dtype(info["dtype"])
        if dtype.kind == "f":
            found.append(rng.random(info["shape"]).astype(dtype))
        else:
            span = np.iinfo(dtype)
            low, high = (span.min, span.max) if dtype.itemsize == 1 else (0, 2)
            found.append(rng.integers(low, high, info["shape"], dtype=dtype, endpoint=True))
    return found


def litert(interpreter: Any, inputs: Sequence[Array]) -> Run:
    """LiteRT with XNNPACK, its default."""
    places = [info["index"] for info in interpreter.get_input_details()]
    outputs = [info["index"] for info in interpreter.get_output_details()]

    def run() -> list[Array]:
        for place, value in zip(places, inputs, strict=True):
            interpreter.set_tensor(place, value)
        interpreter.invoke()
        return [interpreter.get_tensor(place) for place in outputs]

    return run


def ours(library: Path, threads: int, inputs: Sequence[Array]) -> Run:
    """A compiled library."""
    request = runtime.load(library, threads).create_infer_request()
    given = list(inputs)
    return lambda: list(request.infer(given).to_tuple())


def compare(path: Path, library: Path, threads: int, seconds: float) -> str:
    """A line of the table: least milliseconds of both, the ratio of the medians of rounds, the largest difference."""
    interpreter = Interpreter(str(path), num_threads=threads)
    interpreter.allocate_tensors()
    inputs = inputs_of(interpreter)
    runs = (ours(library, threads, inputs), litert(interpreter, inputs))
    gap = difference(*(run() for run in runs))
    times: tuple[list[float], ...] = ([], [])
    ratios: list[float] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(ratios) < 3:
        middle: list[float] = []
        for run, spent in zip(runs, times, strict=True):
            mine = timed(run, seconds / 20)
            spent += mine
            middle.append(statistics.median(mine))
        ratios.append(middle[1] / middle[0])
    least = [min(spent) * 1e3 for spent in times]
    low, high = np.quantile(ratios, (0.1, 0.9))
    ratio = f"**{statistics.median(ratios):.2f}** | {low:.2f}–{high:.2f}"
    return f"| {path.stem} | {threads} | {least[0]:.3g} | {least[1]:.3g} | {ratio} | {gap} |"


def timed(run: Run, seconds: float) -> list[float]:
    """Seconds of each of the calls in a stretch of time; one call before is not counted."""
    run()
    found: list[float] = []
    end = time.perf_counter() + seconds
    while not found or time.perf_counter() < end:
        begin = time.perf_counter()
        run()
        found.append(time.perf_counter() - begin)
    return found


def difference(a: Sequence[Array], b: Sequence[Array]) -> str:
    """The largest difference: of floats relative to the largest number, of integers in levels."""
    texts: list[tuple[float, str]] = []
    for x, y in zip(a, b, strict=True):
        gap = float(np.abs(x.astype(np.float64) - y).max(initial=0))
        if x.dtype.kind == "f":
            gap /= max(float(np.abs(y).max(initial=0)), 1e-30)
        texts.append((gap, f"{gap:.0e}" if x.dtype.kind == "f" else f"{gap:.0f} levels"))
    return max(texts)[1]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tflite", description=__doc__)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--threads", default="1,2", help="numbers of threads, with commas between")
    parser.add_argument("--seconds", type=float, default=2.0, help="for each model and number of threads")
    parser.add_argument("--libraries", type=Path, help="keep the compiled models there; those found there are used")
    args = parser.parse_args()
    heads = ("model", "threads", "ours ms", "LiteRT ms", "ratio", "10–90 %", "largest difference")
    print(f"| {' | '.join(heads)} |\n{'|--' * len(heads)}|")
    with tempfile.TemporaryDirectory() as folder:
        for path in args.models:
            library = Path(args.libraries or folder) / f"{path.stem}.so"
            if not library.exists():
                compile_apart(path, library)
            for threads in map(int, args.threads.split(",")):
                print(compare(path, library, threads, args.seconds))
                sys.stdout.flush()


if __name__ == "__main__":
    main()
