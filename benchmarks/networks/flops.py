"""Counts a network's floating-point operations: two for each multiply-add of convolutions, products and cells."""

from __future__ import annotations

import math
from pathlib import Path

import openvino as ov

from benchmarks.networks.folder import placed

_CELLS = {"LSTM": 4, "GRU": 3, "RNN": 1}


def gflop(xml: Path, shapes: dict[str, tuple[int, ...]]) -> float:
    """Billions in one inference with inputs of these shapes; the textbook's count, whatever a runtime really does."""
    model = ov.Core().read_model(str(xml))
    ports = [{*port.get_names(), port.get_node().get_friendly_name()} for port in model.inputs]
    model.reshape({model.inputs[i]: list(shape) for i, shape in placed(ports, shapes).items()})
    return sum(map(_of, _nodes(model))) / 1e9


def _nodes(model: ov.Model) -> list[ov.Node]:
    return list(model.get_ordered_ops())


def _of(node: ov.Node) -> int:
    kind = node.get_type_name()
    if kind in ("Convolution", "GroupConvolution", "ConvolutionBackpropData", "GroupConvolutionBackpropData"):
        return _convolution(node, kind)
    if kind == "MatMul":
        a, out = _shape(node, 0), list(node.output(0).shape)
        depth = a[-2] if node.get_attributes().get("transpose_a") and len(a) > 1 else a[-1]
        return 2 * depth * math.prod(out)
    for cell, gates in _CELLS.items():
        if kind in (f"{cell}Sequence", f"{cell}Cell"):
            return _recurrent(node, gates, kind.endswith("Sequence"))
    return 0


def _convolution(node: ov.Node, kind: str) -> int:
    weights = _shape(node, 1)
    grouped = kind.startswith("Group")
    per_element = math.prod(weights[2:] if grouped else weights[1:])  # of an output, or of an input when transposed
    spread = _shape(node, 0) if "Backprop" in kind else list(node.output(0).shape)
    return 2 * per_element * math.prod(spread)


def _recurrent(node: ov.Node, gates: int, sequence: bool) -> int:
    x = _shape(node, 0)
    hidden = int(node.get_attributes()["hidden_size"])
    steps = x[1] if sequence else 1
    directions = 2 if node.get_attributes().get("direction") == "bidirectional" else 1
    return 2 * x[0] * steps * directions * gates * hidden * (x[-1] + hidden)


def _shape(node: ov.Node, index: int) -> list[int]:
    return list(node.input_value(index).get_shape())
