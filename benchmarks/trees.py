"""Ensembles of trees against ONNX Runtime: `python -m benchmarks.trees [MODEL.onnx...] [--threads 1,2] [--seconds 1]`.

Both run in one process, in turn, on other rows each time. Without models: ensembles of random trees of the size of a
forest (100 trees of depth 8, a score for each of 3 classes) and of gradient boosting (500 trees of 31 leaves). Times of
one thread are processor time, those of several are wall time.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

import aot
from benchmarks.timing.report import machine

ROWS = (1, 2, 8, 32, 100, 1000, 10_000)
FEATURES = 28
Array = np.ndarray[Any, np.dtype[Any]]


def forest(trees: int, leaves: int, targets: int, balanced: bool) -> onnx.ModelProto:
    """A TreeEnsembleRegressor whose trees grow level by level, or at a random leaf."""
    rng = np.random.default_rng(0)
    nodes: dict[str, list[Any]] = {n: [] for n in ("treeids", "nodeids", "featureids", "modes", "values")}
    nodes |= {"truenodeids": [], "falsenodeids": []}
    said: dict[str, list[Any]] = {n: [] for n in ("treeids", "nodeids", "ids", "weights")}
    for tree in range(trees):
        children: list[tuple[int, int] | None] = [None]
        ends = [0]
        while len(ends) < leaves:
            at = ends.pop(0 if balanced else int(rng.integers(len(ends))))
            children[at] = len(children), len(children) + 1
            ends += children[at] or ()
            children += [None, None]
        for node, below in enumerate(children):
            mode = "LEAF" if below is None else "BRANCH_LEQ"
            row = (tree, node, int(rng.integers(FEATURES)), mode, float(rng.normal() / 2), *(below or (0, 0)))
            for values, value in zip(nodes.values(), row, strict=True):
                values.append(value)
            for target in range(targets if below is None else 0):
                for values, value in zip(said.values(), (tree, node, target, float(rng.normal())), strict=True):
                    values.append(value)
    attributes = {f"nodes_{k}": v for k, v in nodes.items()} | {f"target_{k}": v for k, v in said.items()}
    node = helper.make_node("TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml", n_targets=targets, **attributes)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", FEATURES])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["rows", targets])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(helper.make_graph([node], "forest", [x], [y]), opset_imports=opsets, ir_version=9)


def compare(path: Path, threads: int, seconds: float) -> list[str]:
    """Lines of the table: milliseconds of both, the ratio of the medians, the largest difference."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = threads, 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    compiled = aot.compile_model(path, threads=threads)
    port = session.get_inputs()[0]
    data = np.random.default_rng(1).standard_normal((max(ROWS), port.shape[1])).astype(np.float32)

    def theirs(x: Array) -> Any:
        return session.run(None, {port.name: x})

    def ours(x: Array) -> Any:
        found = compiled(x)
        return [found[k] for k in range(len(session.get_outputs()))]

    lines: list[str] = []
    for rows in ROWS:
        pairs = zip(theirs(data[:rows]), ours(data[:rows]), strict=True)
        gap = max(float(np.abs(np.asarray(a, np.float64) - b).max()) for a, b in pairs)
        clock = time.process_time if threads == 1 else time.perf_counter
        a, b = in_turn((theirs, ours), data, rows, seconds, clock)
        figures = f"{min(b) * 1e3:.4f} | {min(a) * 1e3:.4f} | {statistics.median(a) / statistics.median(b):.1f}"
        lines.append(f"| {path.stem} | {threads} | {rows} | {figures} | {gap:.0e} |")
    return lines


def in_turn(
    runs: tuple[Callable[[Array], Any], ...], data: Array, rows: int, seconds: float, clock: Callable[[], float]
) -> list[list[float]]:
    """Seconds of each call of each of `runs`, all on the same rows, which change from turn to turn."""
    times: list[list[float]] = [[] for _ in runs]
    start, at = time.perf_counter(), 0
    while time.perf_counter() - start < seconds or len(times[0]) < 3:
        x = data[at : at + rows]
        at = (at + rows) % (len(data) - rows + 1)
        for run, spent in zip(runs, times, strict=True):
            begin = clock()
            run(x)
            spent.append(clock() - begin)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.trees", description=__doc__)
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--threads", default="1,2", help="numbers of threads, with commas between")
    parser.add_argument("--seconds", type=float, default=1.0, help="for each number of rows")
    args = parser.parse_args()
    heads = ("model", "threads", "rows", "ours ms", "ONNX Runtime ms", "ratio", "largest difference")
    lines = [f"| {' | '.join(heads)} |", "|--" * len(heads) + "|"]
    with tempfile.TemporaryDirectory() as folder:
        models: list[Path] = args.models
        if not models:
            models = [Path(folder) / "forest_100x256.onnx", Path(folder) / "boosting_500x31.onnx"]
            for path, made in zip(models, (forest(100, 256, 3, True), forest(500, 31, 1, False)), strict=True):
                path.write_bytes(made.SerializeToString())
        for path in models:
            for threads in map(int, args.threads.split(",")):
                lines += compare(path, threads, args.seconds)
    print(machine())
    print("\n".join(lines))


if __name__ == "__main__":
    main()
