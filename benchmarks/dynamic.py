"""One dynamic model against a static one for each size: `python -m benchmarks.dynamic MODEL.xml --size INPUT=SHAPE`.

    python -m benchmarks.dynamic ppocr4_det/model_dyn.xml --size x=1x3x320x480 --size x=2x3x64x96 [--json out.json]

Both infer by turns in one process, with one thread; `ratio` is the median over rounds of dynamic over static time, of
the processor. With `--peers` OpenVINO in f32 and, for ONNX files, ONNX Runtime take turns, too: `peers` is the least
time of the faster one over ours.
`first` is the first call at a size, after calls at all other ones, over a repeated one; `memory` the arena over the
static one's. `bits` says whether one and two threads give the same, `error` how far the largest difference from
OpenVINO's result at this size is, over its largest value.
"""

from __future__ import annotations

import argparse
import json
import math
import shlex
import statistics
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from aot.compilation.driver import compile_model, stages
from aot.compilation.jit import in_memory
from aot.options import CompileOptions
from aot.options.texts import dims_of, shapes_of
from aot.runtime.arrays.tensors import numpy_dtype
from aot.runtime.inference.request import InferRequest
from aot.runtime.model import CompiledModel
from benchmarks.networks.folder import Array
from benchmarks.timing.engines import Run, onnxruntime, openvino
from benchmarks.timing.report import Row, machine, number

TURN_SECONDS = 0.05
FIRST_CALLS = 5
Inputs = Mapping[str, Array]


def arguments(given: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.dynamic", description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--size", action="append", required=True, nargs="+", help="INPUT=1x3x64x64 for each input")
    parser.add_argument("--dim", action="append", default=[], help="as of `aot compile`")
    parser.add_argument("--shape", action="append", default=[], help="as of `aot compile`, with names")
    parser.add_argument("--below", type=int, default=100, help="integer inputs are noise below this")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--peers", action="store_true", help="time ONNX Runtime and OpenVINO, too")
    parser.add_argument("--json", type=Path, help="write all figures there")
    return parser.parse_args(given)


def run(given: list[str] | None = None) -> int:
    """The exit code."""
    args = arguments(given)
    options = CompileOptions(shapes=shapes_of(args.shape), dims=dims_of(args.dim))
    one, two = (in_memory(stages(args.model, options).built, threads) for threads in (1, 2))
    rows: list[Row] = []
    print("| size | static ms | dynamic ms | ratio | peers | first | memory | bits | error |\n" + "|--" * 9 + "|")
    sizes = [shapes_of(size) for size in args.size]
    inputs = [noise(one, dict(size), args.below) for size in sizes]
    for size, arrays in zip(sizes, inputs, strict=True):
        others = [other for other in inputs if other is not arrays]
        fixed = compile_model(args.model, CompileOptions(shapes=size), threads=1)
        row: Row = {"size": ", ".join(f"{name} {'x'.join(map(str, shape))}" for name, shape in size)}
        requests = {name: bound(model, arrays).infer for name, model in (("static", fixed), ("dynamic", one))}
        row |= times(requests | (peers(args.model, arrays) if args.peers else {}), args.rounds)
        row |= first_call(one, arrays, others)
        row |= memory(fixed, one, arrays) | agreement(args.model, fixed, one, two, arrays)
        rows.append(row)
        print(line(row), flush=True)
    if args.json:
        command = shlex.join(["python", "-m", "benchmarks.dynamic", *(sys.argv[1:] if given is None else given)])
        args.json.write_text(json.dumps({"command": command, "machine": machine(), "rows": rows}, indent=1) + "\n")
    return 0


def noise(model: CompiledModel, shapes: Mapping[str, tuple[int | str, ...]], below: int) -> Inputs:
    """Inputs of these shapes."""
    source, made = np.random.default_rng(0), dict[str, Array]()
    for info in model.inputs:
        dtype = numpy_dtype(info)
        name = next(name for name in (info.name, *info.names) if name in shapes)
        shape = tuple(map(int, shapes[name]))
        drawn = source.standard_normal(shape) if dtype.kind == "f" else source.integers(0, below, shape)
        made[info.name] = drawn.astype(dtype)
    return made


def bound(model: CompiledModel, inputs: Inputs) -> InferRequest:
    """A request that has inferred these inputs."""
    request = model.create_infer_request()
    request.infer(inputs)
    return request


def peers(path: Path, inputs: Inputs) -> dict[str, Run]:
    """Inferences of the other runtimes that read the file."""
    found = {"OpenVINO": openvino(path, inputs, 1)[0]}
    if path.suffix == ".onnx":
        found["ONNX Runtime"] = onnxruntime(path, inputs, 1)[0]
    for infer in found.values():
        infer()
    return found


def times(runs: Mapping[str, Run], rounds: int) -> Row:
    """Milliseconds of all, by turns; the ratio of dynamic to static is taken inside of a round."""
    names = list(runs)
    counts = {name: max(1, round(TURN_SECONDS / timed(infer, 1))) for name, infer in runs.items()}
    turns: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(rounds):
        first = turn % len(names)
        for name in (*names[first:], *names[:first]):
            turns[name].append(timed(runs[name], counts[name]))
    row: Row = {name: statistics.median(spent) * 1e3 for name, spent in turns.items()}
    row["ratio"] = statistics.median(b / a for a, b in zip(turns["static"], turns["dynamic"], strict=True))
    if others := [min(turns[name]) for name in names[2:]]:
        row["peers"] = min(others) / min(turns["dynamic"])
    return row


def timed(infer: Run, count: int) -> float:
    """Seconds of the processor that an inference takes: the median of `count`."""
    spent: list[float] = []
    for _ in range(count):
        begin = time.process_time()
        infer()
        spent.append(time.process_time() - begin)
    return statistics.median(spent)


def first_call(model: CompiledModel, inputs: Inputs, others: list[Inputs]) -> Row:
    """The first call at a size over the third one, each time after calls at all other sizes."""
    request = model.create_infer_request()
    for given in (*others, inputs):
        request.infer(given)
    found: list[float] = []
    for _ in range(FIRST_CALLS):
        for given in others:
            request.infer(given)
        spent: list[float] = []
        for _ in range(3):
            begin = time.perf_counter()
            request.infer(inputs)
            spent.append(time.perf_counter() - begin)
        found.append(spent[0] / spent[2])
    return {"first": statistics.median(found)}


def memory(fixed: CompiledModel, dynamic: CompiledModel, inputs: Inputs) -> Row:
    """The arena of a request that has run at this size only, over that of the static model."""
    sizes: list[int] = []
    for model in (fixed, dynamic):
        request = model.create_infer_request()
        request.infer(inputs)
        sizes.append(request.arena_bytes)
    return {"arena": sizes[1], "memory": sizes[1] / sizes[0]}


def agreement(path: Path, fixed: CompiledModel, one: CompiledModel, two: CompiledModel, inputs: Inputs) -> Row:
    """Are bits equal for one and two threads; how far are results from the static ones, and from OpenVINO's?"""
    found = [list(model(inputs).to_tuple()) for model in (one, two, fixed)]
    bits = all(np.array_equal(a, b, equal_nan=True) for a, b in zip(found[0], found[1], strict=True))
    row: Row = {"bits": bits, "from static": difference(found[0], found[2])}
    if find_spec("openvino") is not None:
        with ProcessPoolExecutor(1, get_context("spawn")) as apart:
            row["error"] = difference(found[0], apart.submit(expected, path, dict(inputs)).result())
    return row


def expected(path: Path, inputs: Inputs) -> list[Array]:
    """OpenVINO's results, in a process of its own."""
    _, outputs = openvino(path, inputs, 1)
    return outputs()


def difference(found: list[Array], wanted: list[Array]) -> float:
    """The largest one, over the largest value; infinite where shapes differ."""
    if [a.shape for a in found] != [b.shape for b in wanted]:
        return math.inf
    pairs = [(a.astype(np.float64), b.astype(np.float64)) for a, b in zip(found, wanted, strict=True) if a.size]
    return max((float(np.abs(a - b).max() / max(np.abs(b).max(), 1e-30)) for a, b in pairs), default=0.0)


def line(row: Row) -> str:
    bits = "equal" if row["bits"] else "**differ**"
    error = number(row, "error")
    cells = [f"{number(row, key):.4g}" for key in ("static", "dynamic")]
    cells += [f"{number(row, key):.2f}" for key in ("ratio", "peers", "first", "memory")]
    return f"| {row['size']} | {' | '.join(cells)} | {bits} | {error:.1e} |"


if __name__ == "__main__":
    raise SystemExit(run())
