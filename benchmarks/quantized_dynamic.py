"""Dynamically quantised networks against ONNX Runtime and OpenVINO: processor time of one thread.

    python -m benchmarks.quantized_dynamic [--target x86-64-v4-amx]

DynamicQuantizeLinear with MatMulInteger or ConvInteger, four layers each, and DynamicQuantizeLSTM; `ir`: the same as
OpenVINO's converter writes it. Data and weights are random; errors are the largest difference over the largest result.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import openvino
from onnx import TensorProto, helper, numpy_helper

import aot
from aot.ir.types import Array

LAYERS = 4
SECONDS = 0.15  # of one measurement, of which the least of several counts
ROUNDS = 7


@dataclass
class Network:
    """An ONNX model that is being written."""

    name: str
    shape: tuple[int, ...]
    nodes: list[Any] = field(default_factory=list[Any])
    held: dict[str, Array] = field(default_factory=dict[str, Array])

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(0)
        self.last = "x"

    def layer(self, product: str, weights: tuple[int, ...], channels: int, zero: int, **attrs: object) -> None:
        """Add a quantised product with weights of i8 (zero point 0) or u8, its bias, and Relu."""
        n, signed = len(self.nodes), zero == 0
        w = self.random.integers(-127, 128, weights) if signed else self.random.integers(0, 256, weights)
        terms = np.prod(weights) / channels
        self.held |= {
            f"w{n}": w.astype(np.int8 if signed else np.uint8),
            f"z{n}": np.array(zero, np.int8 if signed else np.uint8),
            f"s{n}": np.array(0.02 / np.sqrt(terms), np.float32),
            f"b{n}": self.random.standard_normal((channels, 1, 1)[: 1 if product == "MatMulInteger" else 3]).astype(
                "f"
            ),
        }
        q, scale, point, total, number, unit, scaled, added, y = (f"{c}{n}" for c in "q t p i n u m a y".split())
        self.nodes += [
            helper.make_node("DynamicQuantizeLinear", [self.last], [q, scale, point]),
            helper.make_node(product, [q, f"w{n}", point, f"z{n}"], [total], **attrs),
            helper.make_node("Cast", [total], [number], to=TensorProto.FLOAT),
            helper.make_node("Mul", [scale, f"s{n}"], [unit]),
            helper.make_node("Mul", [number, unit], [scaled]),
            helper.make_node("Add", [scaled, f"b{n}"], [added]),
            helper.make_node("Relu", [added], [y]),
        ]
        self.last = y

    def save(self, folder: Path) -> Path:
        tensors = [numpy_helper.from_array(a, n) for n, a in self.held.items()]
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, self.shape)
        y = helper.make_tensor_value_info(self.last, TensorProto.FLOAT, None)
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
        graph = helper.make_graph(self.nodes, self.name, [x], [y], tensors)
        onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), folder / f"{self.name}.onnx")
        return folder / f"{self.name}.onnx"


def networks() -> Iterator[Network]:
    for rows, zero in ((1, 0), (128, 0), (128, 117)):
        net = Network(f"mlp_{rows}_{'u8' if zero else 'i8'}", (rows, 512))
        for _ in range(LAYERS):
            net.layer("MatMulInteger", (512, 512), 512, zero)
        yield net
    for zero in (128, 117):
        net = Network(f"conv_48_zero_{zero}", (1, 3, 56, 56))
        for n in range(LAYERS):
            net.layer("ConvInteger", (48, 48 if n else 3, 3, 3), 48, zero, pads=[1] * 4, kernel_shape=[3, 3])
        yield net
    yield _recurrent(50, 128, 256)


def _recurrent(steps: int, size: int, hidden: int) -> Network:
    net = Network("lstm_256", (steps, 1, size))
    w, r = (net.random.integers(-127, 128, (1, n, 4 * hidden)).astype(np.int8) for n in (size, hidden))
    scales = {"ws": np.float32([0.002]), "rs": np.float32([0.0015]), "wz": np.int8([0]), "rz": np.int8([0])}
    net.held |= {"w": w, "r": r, "b": 0.1 * net.random.standard_normal((1, 8 * hidden)).astype(np.float32), **scales}
    names = ["x", "w", "r", "b", "", "", "", "", "ws", "wz", "rs", "rz"]
    net.nodes.append(helper.make_node("DynamicQuantizeLSTM", names, ["y"], domain="com.microsoft", hidden_size=hidden))
    net.last = "y"
    return net


def least(run: Callable[[], object]) -> float:
    """Return the least processor time of a run, in ms."""
    run()
    start = time.process_time()
    run()
    count = max(1, int(SECONDS / max(time.process_time() - start, 1e-5)))
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.process_time()
        for _ in range(count):
            run()
        best = min(best, (time.process_time() - start) / count)
    return best * 1e3


def _openvino(path: Path) -> Callable[[Array], object]:
    settings = {"INFERENCE_NUM_THREADS": 1, "NUM_STREAMS": 1}
    request = openvino.Core().compile_model(path, "CPU", settings).create_infer_request()
    return lambda x: request.infer([x])


def measure(path: Path, source: Path, x: Array, target: str) -> str:
    """Return a row of the table for a model, whose ONNX is `source`."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    model = aot.compile_model(path, threads=1, target=target)
    wanted, found = session.run(None, {"x": x})[0], model(x)[0]
    error = float(np.abs(found - wanted).max() / np.abs(wanted).max())
    ours, other = least(lambda: model(x)), least(lambda: session.run(None, {"x": x}))
    infer = _openvino(path)
    name = path.stem if path == source else f"{path.stem}, ir"
    return f"| {name} | {ours:.3g} | {other:.3g} | {least(lambda: infer(x)):.3g} | {other / ours:.2f} | {error:.1e} |"


def main() -> None:
    parser = argparse.ArgumentParser(description="Dynamically quantised networks.")
    parser.add_argument("--target", default="native")
    target = parser.parse_args().target
    print("| network | ours | ONNX Runtime | OpenVINO | ONNX Runtime / ours | error |\n|--|--|--|--|--|--|")
    with tempfile.TemporaryDirectory() as name:
        for net in networks():
            source = net.save(Path(name))
            x = np.random.default_rng(1).standard_normal(net.shape).astype(np.float32)
            print(measure(source, source, x, target), flush=True)
            if "lstm" not in net.name:
                converted = source.with_suffix(".xml")
                openvino.save_model(openvino.convert_model(source), converted, compress_to_fp16=False)
                print(measure(converted, source, x, target), flush=True)


if __name__ == "__main__":
    main()
