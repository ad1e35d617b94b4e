"""Compile time of growing networks, in processor time.

`python -m benchmarks.compilation.growing [KIND...] [--sizes 1000,2000]`

    chain      elementwise operations, one after another          tanh       the same with one costly operation
    wide       pairs of operations side by side, in one Concat    products   MatMul, ReLU, Softmax, Add side by side
    residual   convolution, ReLU, sum                             random     a random graph of elementwise operations
    decoder    a stateful decoder with varying sizes              late       MatMul, Softmax, Add over a size from data
    unrolled   a recurrent network, unrolled by its exporter      unlike     products with softmax, each of other sizes

Each row is one network: nodes of its optimised graph, seconds by stage, peak memory. `ms a node` is the slope between
the smallest and the largest network of a kind; the bound is `BOUND`. `--check` compiles no further than `aot check`.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
from onnx import helper

import benchmarks

BOUND = 1.5  # ms a node beyond the first thousand
SIZES = (1000, 2000, 4000, 10000)
Made = tuple[list[onnx.NodeProto], dict[str, np.ndarray], dict[str, list[int | str]], str]


def chain(count: int, kinds: tuple[str, ...] = ("Add", "Mul", "Relu", "Sigmoid", "Sub", "Abs", "Neg", "Max")) -> Made:
    nodes: list[onnx.NodeProto] = []
    for i in range(count):
        kind = kinds[i % len(kinds)]
        second = ["c"] if kind in ("Add", "Mul", "Sub", "Max") else []
        nodes.append(helper.make_node(kind, [f"h{i}", *second], [f"h{i + 1}"]))
    return nodes, {"c": np.linspace(0.5, 1.5, 64, dtype=np.float32)}, {"h0": [1, 64]}, f"h{count}"


def tanh(count: int) -> Made:
    return chain(count, ("Tanh",))


def wide(count: int) -> Made:
    nodes: list[onnx.NodeProto] = []
    for i in range(count // 2):
        scale = helper.make_node("Mul", ["x", f"c{i}"], [f"a{i}"])
        nodes += [scale, helper.make_node("Sigmoid", [f"a{i}"], [f"b{i}"])]
    nodes.append(helper.make_node("Concat", [f"b{i}" for i in range(count // 2)], ["y"], axis=0))
    return nodes, {f"c{i}": np.float32([i / count]) for i in range(count // 2)}, {"x": [1, 64]}, "y"


def products(count: int) -> Made:
    noise, nodes, weights = np.random.default_rng(0), list[onnx.NodeProto](), dict[str, np.ndarray]()
    for i in range(count // 4):
        weights[f"w{i}"] = noise.standard_normal((16, 16)).astype(np.float32)
        nodes += [
            helper.make_node("MatMul", ["x", f"w{i}"], [f"m{i}"]),
            helper.make_node("Relu", [f"m{i}"], [f"r{i}"]),
            helper.make_node("Softmax", [f"r{i}"], [f"s{i}"]),
            helper.make_node("Add", [f"s{i}", f"r{i}"], [f"b{i}"]),
        ]
    nodes.append(helper.make_node("Concat", [f"b{i}" for i in range(count // 4)], ["y"], axis=0))
    return nodes, weights, {"x": [4, 16]}, "y"


def residual(count: int) -> Made:
    noise, nodes, weights = np.random.default_rng(0), list[onnx.NodeProto](), dict[str, np.ndarray]()
    for i in range(count // 3):
        weights[f"w{i}"] = (noise.standard_normal((16, 16, 3, 3)) * 0.05).astype(np.float32)
        nodes += [
            helper.make_node("Conv", [f"h{i}", f"w{i}"], [f"m{i}"], pads=[1, 1, 1, 1]),
            helper.make_node("Relu", [f"m{i}"], [f"r{i}"]),
            helper.make_node("Add", [f"r{i}", f"h{i}"], [f"h{i + 1}"]),
        ]
    return nodes, weights, {"h0": [1, 16, 14, 14]}, f"h{count // 3}"


def random(count: int) -> Made:
    noise, nodes, names, read = np.random.default_rng(3), list[onnx.NodeProto](), ["x"], set[str]()
    for i in range(count):
        a, b = (names[max(0, len(names) - 1 - int(noise.integers(0, 30)))] for _ in range(2))
        kind = ("Add", "Mul", "Tanh", "Softmax", "Sub", "Relu", "Sigmoid", "Max")[int(noise.integers(0, 8))]
        given = [a, b] if kind in ("Add", "Mul", "Sub", "Max") else [a]
        read.update(given)
        nodes.append(helper.make_node(kind, given, [f"t{i}"]))
        names.append(f"t{i}")
    nodes.append(helper.make_node("Max", [n for n in names if n not in read], ["y"]))
    return nodes, {}, {"x": [8, 32]}, "y"


def late(count: int) -> Made:
    nodes = [
        helper.make_node("NonZero", ["i"], ["nz"]),
        helper.make_node("Transpose", ["nz"], ["nt"]),
        helper.make_node("Squeeze", ["nt", "axis"], ["ns"]),
        helper.make_node("Gather", ["x", "ns"], ["h0"]),
    ]
    for k in range(count // 3):
        nodes += [
            helper.make_node("MatMul", [f"h{k}", "w"], [f"m{k}"]),
            helper.make_node("Softmax", [f"m{k}"], [f"s{k}"]),
            helper.make_node("Add", [f"s{k}", f"h{k}"], [f"h{k + 1}"]),
        ]
    weights = {"axis": np.int64([1]), "w": np.eye(16, dtype=np.float32)}
    return nodes, weights, {"x": ["n", 16], "i": ["m"]}, f"h{count // 3}"


def unrolled(count: int) -> Made:
    steps, width = count // 6, 64
    noise, nodes = np.random.default_rng(0), list[onnx.NodeProto]()
    weights: dict[str, np.ndarray] = {n: (noise.standard_normal((width, width)) / 8).astype(np.float32) for n in "uv"}
    weights["b"] = np.zeros(width, np.float32)
    for i in range(steps):
        weights[f"i{i}"] = np.array(i)
        nodes += [
            helper.make_node("Gather", ["x", f"i{i}"], [f"x{i}"]),
            helper.make_node("MatMul", [f"x{i}", "u"], [f"a{i}"]),
            helper.make_node("MatMul", [f"h{i}", "v"], [f"r{i}"]),
            helper.make_node("Add", [f"a{i}", f"r{i}"], [f"s{i}"]),
            helper.make_node("Add", [f"s{i}", "b"], [f"t{i}"]),
            helper.make_node("Tanh", [f"t{i}"], [f"h{i + 1}"]),
        ]
    return nodes, weights, {"x": [steps, 1, width], "h0": [1, width]}, f"h{steps}"


def unlike(count: int) -> Made:
    noise, nodes, weights = np.random.default_rng(0), list[onnx.NodeProto](), dict[str, np.ndarray]()
    for i in range(count // 4):
        width = 16 + i
        weights[f"w{i}"] = (noise.standard_normal((16, width)) / 4).astype(np.float32)
        weights[f"v{i}"] = (noise.standard_normal((width, 16)) / 4).astype(np.float32)
        nodes += [
            helper.make_node("MatMul", [f"h{i}", f"w{i}"], [f"m{i}"]),
            helper.make_node("Softmax", [f"m{i}"], [f"s{i}"]),
            helper.make_node("MatMul", [f"s{i}", f"v{i}"], [f"p{i}"]),
            helper.make_node("Add", [f"p{i}", f"h{i}"], [f"h{i + 1}"]),
        ]
    return nodes, weights, {"h0": [8, 16]}, f"h{count // 4}"


KINDS: dict[str, Callable[[int], Made]] = {
    "chain": chain,
    "tanh": tanh,
    "wide": wide,
    "products": products,
    "residual": residual,
    "random": random,
    "late": late,
    "unrolled": unrolled,
    "unlike": unlike,
}
NODES_OF_A_LAYER = 95  # of the decoder's optimised graph


def write(kind: str, count: int, folder: Path) -> Path:
    """A network of about `count` nodes; the path of its file."""
    if kind == "decoder":
        from benchmarks.language.decoder import Llama, make  # noqa: PLC0415  (the others do not need OpenVINO)

        return make(folder, Llama(layers=max(1, count // NODES_OF_A_LAYER), width=144, inner=384, words=1000))
    nodes, weights, inputs, output = KINDS[kind](count)
    given = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, s) for n, s in inputs.items()]
    result = helper.make_tensor_value_info(output, onnx.TensorProto.FLOAT, None)
    fixed = [onnx.numpy_helper.from_array(a, n) for n, a in weights.items()]
    graph = helper.make_graph(nodes, kind, given, [result], fixed)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), folder / "m.onnx")
    return folder / "m.onnx"


def measure(model: Path, *, check: bool) -> dict[str, float]:
    """Nodes, seconds of processor time by stage and in all, and MB at most, of a process of its own."""
    command = [
        sys.executable,
        "-m",
        "benchmarks.compilation.growing",
        "--one",
        str(model),
        *(["--check"] if check else []),
    ]
    root = Path(benchmarks.__file__).parent.parent
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(" | ".join(done.stderr.strip().splitlines()[-2:]))
    return json.loads(done.stdout)


def compile_one(model: str, *, check: bool) -> dict[str, float]:
    """What `measure` says, in this process."""
    from aot.compilation.driver import stages  # noqa: PLC0415  (its memory counts)
    from aot.options import CompileOptions  # noqa: PLC0415  (so does its)

    made = stages(model, CompileOptions(target="x86-64-v3"))
    found: dict[str, float] = {}
    for stage in ("optimized", "steps", "program", *(() if check else ("built",))):
        begin = time.process_time()
        getattr(made, stage)
        found[stage] = time.process_time() - begin
    own, others = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    seconds = own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime
    return {"nodes": len(made.optimized.nodes), **found, "seconds": seconds, "mb": own.ru_maxrss / 1024}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compilation.growing", description=__doc__)
    parser.add_argument("kinds", nargs="*", help=f"of {', '.join([*KINDS, 'decoder'])}; all without any")
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="numbers of nodes")
    parser.add_argument("--check", action="store_true", help="lower only, as `aot check` does")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(compile_one(args.one, check=args.check)))
        return
    for kind in args.kinds or [*KINDS, "decoder"]:
        rows: list[tuple[int, float]] = []
        for count in map(int, args.sizes.split(",")):
            with tempfile.TemporaryDirectory() as folder:
                try:
                    found = measure(write(kind, count, Path(folder)), check=args.check)
                except RuntimeError as error:
                    print(f"{kind:9} {count:6} {error}", flush=True)
                    continue
            rows.append((count, found["seconds"]))
            print(f"{kind:9} {count:6} " + "  ".join(f"{k} {v:.2f}" for k, v in found.items()), flush=True)
        if len(rows) > 1:
            slope = 1e3 * (rows[-1][1] - rows[0][1]) / (rows[-1][0] - rows[0][0])
            verdict = "ok" if slope <= BOUND else "too slow"
            print(f"{kind:9} {slope:.2f} ms a node, at most {BOUND}: {verdict}", flush=True)


if __name__ == "__main__":
    main()
