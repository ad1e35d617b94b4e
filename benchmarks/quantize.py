"""Quantises the network in a folder: `python -m benchmarks.quantize FOLDER OUT [--weights-only]`.

As OpenVINO's quantisation leaves it: weights of products in 8 bits with a factor for each output, and FakeQuantize in
front of their data, with the range that the folder's inputs give. With --weights-only, weights are u8 with zero points,
and activations stay f32. Expected outputs are OpenVINO's; runtimes differ where a value lies between two steps.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
from numpy.typing import NDArray
from openvino import opset13 as ops

from benchmarks.networks.copies import results, save
from benchmarks.networks.folder import Folder

PRODUCTS = ("Convolution", "GroupConvolution", "ConvolutionBackpropData", "MatMul")
STEPS = 255
TOLERANCE = 0.1  # of the largest output: a few steps of values that were rounded the other way

Floats = NDArray[np.float32]


def products(model: ov.Model) -> Iterator[tuple[ov.Node, Floats, tuple[int, ...]]]:
    """Nodes with constant weights, the weights, and their dimensions that are summed."""
    for node in model.get_ordered_ops():
        kind = node.get_type_name()
        if kind not in PRODUCTS:
            continue
        w = _constant(node.input_value(1).get_node())
        if w is None or (kind == "MatMul" and w.ndim != 2):
            continue
        outer = {"Convolution": (0,), "GroupConvolution": (0, 1), "ConvolutionBackpropData": (1,)}.get(kind)
        if outer is None:
            outer = (0,) if node.get_attributes()["transpose_b"] else (1,)
        yield node, w, tuple(k for k in range(w.ndim) if k not in outer)


def _constant(node: ov.Node) -> Floats | None:
    if node.get_type_name() == "Convert":
        node = node.input_value(0).get_node()
    return node.get_data().astype(np.float32) if node.get_type_name() == "Constant" else None


def signed(w: Floats, sums: tuple[int, ...]) -> ov.Node:
    """Whole numbers up to 127 times a factor."""
    factor = np.maximum(np.abs(w).max(sums, keepdims=True), 1e-12) / 127
    whole = ops.constant(np.rint(w / factor).astype(np.int8))
    return ops.multiply(ops.convert(whole, np.float32), ops.constant(factor.astype(np.float32)))


def unsigned(w: Floats, sums: tuple[int, ...]) -> ov.Node:
    """Whole numbers up to 255 less a zero point, times a factor."""
    low, high = w.min(sums, keepdims=True).clip(max=0), w.max(sums, keepdims=True).clip(min=1e-12)
    factor = (high - low) / STEPS
    zero = np.rint(-low / factor)
    whole = ops.constant((np.rint(w / factor) + zero).clip(0, STEPS).astype(np.uint8))
    moved = ops.subtract(ops.convert(whole, np.float32), ops.convert(ops.constant(zero.astype(np.uint8)), np.float32))
    return ops.multiply(moved, ops.constant(factor.astype(np.float32)))


def in_steps(data: Any, low: float, high: float) -> ov.Node:
    """FakeQuantize from `low` to `high`, with 0 on a step."""
    low, high = min(low, 0.0), max(high, 1e-6)
    step = (high - low) / STEPS
    zero = round(-low / step)
    limits = [ops.constant(np.float32(n * step)) for n in (-zero, STEPS - zero)]
    return ops.fake_quantize(data, *limits, *limits, STEPS + 1)


def quantize(folder: Folder, *, weights_only: bool) -> ov.Model:
    """The network of a folder, quantised."""
    model = ov.Core().read_model(folder.xml)
    found = list(products(model))
    if not weights_only:
        sources = {(s.get_node().get_friendly_name(), s.get_index()): s for s in (n.input_value(0) for n, *_ in found)}
        _calibrate(folder, model, sources)
    for node, w, sums in found:
        node.input(1).replace_source_output((unsigned if weights_only else signed)(w, sums).output(0))
    model.validate_nodes_and_infer_types()
    return model


def _calibrate(folder: Folder, model: ov.Model, sources: dict[tuple[str, int], Any]) -> None:
    """A FakeQuantize behind each source, for all products that read it."""
    watched = ov.Model([ops.result(s) for s in sources.values()], model.get_parameters())
    ranges = [(float(a.min()), float(a.max())) for a in results(watched, folder)]
    for source, (low, high) in zip(sources.values(), ranges, strict=True):
        made = in_steps(source, low, high).output(0)
        for target in source.get_target_inputs():
            if target.get_node().get_type_name() in PRODUCTS and not target.get_index():
                target.replace_source_output(made)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quantize", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--weights-only", action="store_true", help="activations stay f32")
    args = parser.parse_args()
    folder = Folder(args.folder)
    folder.check()
    tolerance = {} if args.weights_only else {"tolerance": TOLERANCE}
    made = quantize(folder, weights_only=args.weights_only)
    save(made, folder, args.out, "benchmarks.quantize", **tolerance)


if __name__ == "__main__":
    main()
