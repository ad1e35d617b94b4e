"""Full counts for `aot convert`.

    python -m benchmarks.compilation.conversions cases FOLDER [--list]   IR cases: folders of model.xml and inputs.npz
    python -m benchmarks.compilation.conversions own [--list]            the operation cases of this project's tests
    python -m benchmarks.compilation.conversions onnx [--list]           the node tests of the package `onnx`

`cases` and `own`: OpenVINO computes the same bits from what we write as from the original, and what is converted once
more is the same file. `onnx`: a compiled conversion computes the same bits as the compiled model. A worker process does
the items one after another; one that ends the worker counts as such, and the next worker goes on behind it.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx.backend.test.case.node import collect_testcases
from onnx.numpy_helper import to_array
from openvino import Core

from aot.compilation.driver import compile_model
from aot.options import CompileOptions
from aot.runtime.errors import AotError
from aot.tools.convert import convert_model
from aot.writers.openvino import write
from tests.writers.case_models import MODULES, cases, given, network

Array = Any
Verdict = tuple[str, str]  # outcome and reason
SECONDS = 120  # of one item, then its worker is ended
PLAIN = CompileOptions(level=None)
SETTINGS = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}


def same(a: Sequence[Array], b: Sequence[Array]) -> bool:
    """True for outputs of equal types, shapes and bits; NaN equals NaN."""
    pairs = list(zip(a, b, strict=False))
    if len(a) != len(b) or any(x.dtype != y.dtype or x.shape != y.shape for x, y in pairs):
        return False
    return all(np.array_equal(x, y, equal_nan=x.dtype.kind == "f") for x, y in pairs)


def by_openvino(path: Path, steps: list[list[Array]]) -> list[Array]:
    """Outputs of all steps of a model, computed by OpenVINO's CPU plugin."""
    request = Core().compile_model(path, "CPU", SETTINGS).create_infer_request()
    found: list[Array] = []
    for inputs in steps:
        request.infer(dict(enumerate(inputs)), share_inputs=False)
        found += [np.array(tensor.data) for tensor in request.output_tensors]
    return found


def ir_verdict(original: Path, steps: list[list[Array]], folder: Path) -> Verdict:
    first, second = folder / "first.xml", folder / "second.xml"
    try:
        convert_model(original, first)
        convert_model(first, second)
    except AotError as error:
        return "refused", f"{type(error).__name__}: {error}"
    for suffix in (".xml", ".bin"):
        if first.with_suffix(suffix).read_bytes() != second.with_suffix(suffix).read_bytes():
            return "no fixed point", suffix
    try:
        expected = by_openvino(original, steps)
    except RuntimeError as error:
        return "OpenVINO cannot run the original", str(error).strip().rpartition("\n")[2]
    try:
        found = by_openvino(first, steps)
    except RuntimeError as error:
        return "OpenVINO refuses ours", str(error).strip().rpartition("\n")[2]
    if same(found, expected):
        return "equal", ""
    if len(found) == len(expected) and all(
        x.shape == y.shape and np.allclose(x.astype(float), y.astype(float), 1e-4, 1e-5, equal_nan=True)
        for x, y in zip(found, expected, strict=True)
        if x.dtype.kind != "U"
    ):
        return "equal up to rounding", ""
    return "differs", str([(x.dtype.name, x.shape) for x in found][:2])


def ir_items(root: Path) -> list[tuple[str, Callable[[Path], Verdict]]]:
    def item(path: Path) -> Callable[[Path], Verdict]:
        return lambda folder: ir_verdict(path / "model.xml", steps_of(path / "inputs.npz"), folder)

    return [(path.parent.name, item(path.parent)) for path in sorted(root.glob("*/model.xml"))]


def steps_of(path: Path) -> list[list[Array]]:
    """Inputs of each step: `in0`, or `s0_in0` where there are several."""
    held = np.load(path)
    steps: dict[str, list[tuple[int, Array]]] = {}
    for name in held.files:
        step, _, number = name.rpartition("in")
        steps.setdefault(step, []).append((int(number), held[name]))
    return [[array for _, array in sorted(steps[step], key=lambda p: p[0])] for step in sorted(steps)] or [[]]


def own_items() -> list[tuple[str, Callable[[Path], Verdict]]]:
    def item(case: Any) -> Callable[[Path], Verdict]:
        def run(folder: Path) -> Verdict:
            try:
                write(network(case), folder / "model.xml")
            except AotError as error:
                return "refused", f"{type(error).__name__}: {error}"
            return ir_verdict(folder / "model.xml", [given(case)], folder)

        return run

    return [(name, item(case)) for module in MODULES for name, case in cases(module)]


def onnx_items() -> list[tuple[str, Callable[[Path], Verdict]]]:
    def item(test: Any) -> Callable[[Path], Verdict]:
        def run(folder: Path) -> Verdict:
            onnx.save(test.model, folder / "model.onnx")
            inputs = [to_array(x) if isinstance(x, onnx.TensorProto) else x for x in test.data_sets[0][0]]
            try:
                ours = compile_model(folder / "model.onnx", PLAIN, threads=1)
                expected = ours(*inputs)
            except (AotError, TypeError, ValueError) as error:
                return "does not compile", f"{type(error).__name__}: {error}"
            try:
                convert_model(folder / "model.onnx", folder / "ir.xml")
            except AotError as error:
                return "refused", f"{type(error).__name__}: {error}"
            found = compile_model(folder / "ir.xml", PLAIN, threads=1)(*inputs)
            count = len(ours.outputs)
            equal = same([np.asarray(found[i]) for i in range(count)], [np.asarray(expected[i]) for i in range(count)])
            return "equal" if equal else "differs", ""

        return run

    return [(test.name, item(test)) for test in collect_testcases(None)]


def worker(items: list[tuple[str, Callable[[Path], Verdict]]], begin: int, pipe: Any) -> None:
    warnings.simplefilter("ignore")
    for index in range(begin, len(items)):
        with tempfile.TemporaryDirectory() as folder:
            try:
                verdict = items[index][1](Path(folder))
            except Exception as error:
                verdict = "fails", f"{type(error).__name__}: {error}"
        pipe.send((index, verdict))
    os._exit(0)  # OpenVINO's threads need not end


def verdicts(items: list[tuple[str, Callable[[Path], Verdict]]]) -> Iterator[tuple[str, Verdict]]:
    """Yield each item's name and verdict."""
    begin, context = 0, get_context("fork")
    while begin < len(items):
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=worker, args=(items, begin, theirs))
        process.start()
        theirs.close()
        try:
            while begin < len(items):
                if not ours.poll(SECONDS):
                    raise EOFError
                _, verdict = ours.recv()
                yield items[begin][0], verdict
                begin += 1
        except EOFError:
            kind = "takes too long" if process.is_alive() else "ends the process"
            process.kill()
            yield items[begin][0], (kind, "")
            begin += 1
        process.join()


def main() -> None:
    parser = argparse.ArgumentParser(description="Count what conversions keep.")
    parser.add_argument("what", choices=("cases", "own", "onnx"))
    parser.add_argument("folder", type=Path, nargs="?", help="IR cases")
    parser.add_argument("--list", action="store_true", help="print every item that is not equal")
    args = parser.parse_args()
    items = ir_items(args.folder) if args.what == "cases" else own_items() if args.what == "own" else onnx_items()
    counts: Counter[str] = Counter()
    for name, (outcome, reason) in verdicts(items):
        counts[outcome] += 1
        if args.list and outcome != "equal":
            print(f"{outcome}: {name}: {' '.join(reason.split())[:200]}", flush=True)
    print(f"{args.what}: {sum(counts.values())} in all; {', '.join(f'{n} {what}' for what, n in counts.most_common())}")


if __name__ == "__main__":
    main()
