"""Recurrent layers."""

from __future__ import annotations

from collections.abc import Sequence

from aot.frontends.conversion.node_context import Outputs, StaticSequence
from aot.frontends.paddle.registry import PaddleNode, paddle
from aot.ir.graph import OutPort
from aot.runtime.abi import DType
from aot.runtime.errors import ModelError

GATES = {"LSTM": (0, 3, 1, 2), "GRU": (1, 0, 2), "RNN_TANH": (0,), "RNN_RELU": (0,)}  # in ONNX's order


@paddle("rnn")
def rnn(
    node: PaddleNode,
    x: OutPort,
    states: OutPort | StaticSequence,
    weights: StaticSequence,
    lengths: OutPort | None = None,
    dropout: OutPort | None = None,
    *,
    mode: str,
    hidden_size: int,
    num_layers: int = 1,
    is_bidirec: bool = False,
    is_test: bool = False,
    dropout_prob: float = 0.0,
) -> Outputs:
    """Run layers one after the other. All layers' matrices of inputs and states come first, then all biases."""
    del dropout
    node.refuse(
        not is_test and dropout_prob > 0, "the network is exported for training: call eval() before it is saved"
    )
    sides, build = 1 + is_bidirec, node.build
    count = 2 * num_layers * sides
    node.refuse(mode not in GATES, f"mode must be one of {', '.join(GATES)}, got {mode}")
    if len(weights) != 2 * count:
        raise ModelError(f"{node.kind}: {num_layers} layers must have {2 * count} weights, got {len(weights)}")
    firsts = states if isinstance(states, tuple) else (states,)
    lasts: list[list[OutPort]] = [[] for _ in firsts]
    numbers = None if lengths is None else node.cast(lengths, DType.I32)
    for layer in range(num_layers):
        part = slice(2 * layer * sides, 2 * (layer + 1) * sides)
        parameters = (_gates(node, weights[:count][part], mode), _gates(node, weights[count:][part], mode))
        begin = [_rows(node, s, layer * sides, sides) for s in firsts]
        x, ends = _layer(node, mode, x, parameters, numbers, begin, hidden_size=hidden_size, sides=sides)
        for states_of, end in zip(lasts, ends, strict=False):
            states_of.append(end)
    joined = tuple(p[0] if len(p) == 1 else build.Concat(*p, axis=0) for p in lasts)
    return Outputs([x, None, joined])


def _layer(
    node: PaddleNode,
    mode: str,
    x: OutPort,
    parameters: tuple[list[OutPort], list[OutPort]],
    lengths: OutPort | None,
    states: list[OutPort],
    *,
    hidden_size: int,
    sides: int,
) -> tuple[OutPort, list[OutPort]]:
    """Return the outputs of a layer, sides next to each other, and its last states. `parameters`: matrices, biases."""
    build, (matrices, biases) = node.build, parameters
    bias = _stacked(node, [build.Concat(*pair, axis=0) for pair in zip(biases[::2], biases[1::2], strict=True)])
    attrs: dict[str, object] = {
        "hidden_size": hidden_size,
        "direction": "bidirectional" if sides > 1 else "forward",
        **({"linear_before_reset": 1} if mode == "GRU" else {}),
        **({"activations": ("Relu",) * sides} if mode == "RNN_RELU" else {}),
    }
    of_inputs, of_states = _stacked(node, matrices[::2]), _stacked(node, matrices[1::2])
    y, *ends = node.onnx(mode.partition("_")[0], x, of_inputs, of_states, bias, lengths, *states, **attrs)
    outputs = build.Transpose(y, node.list([0, 2, 1, 3]))
    return build.Reshape(outputs, node.list([0, 0, -1]), special_zero=True), ends


def _gates(node: PaddleNode, weights: Sequence[OutPort], mode: str) -> list[OutPort]:
    """Return weights with their gates, blocks of rows, in the order of ONNX."""
    order = GATES[mode]
    if len(order) == 1:
        return list(weights)
    gates: list[OutPort] = []
    for w in weights:
        split = node.build.Split(w, node.scalar(0), num_splits=len(order), outputs=len(order)).node
        parts = list(split.out_ports().values())
        gates.append(node.build.Concat(*(parts[i] for i in order), axis=0))
    return gates


def _stacked(node: PaddleNode, parts: Sequence[OutPort]) -> OutPort:
    rows = [node.build.Unsqueeze(p, node.list([0])) for p in parts]
    return rows[0] if len(rows) == 1 else node.build.Concat(*rows, axis=0)


def _rows(node: PaddleNode, x: OutPort, first: int, count: int) -> OutPort:
    return node.build.Slice(x, node.list([first]), node.list([first + count]), node.list([1]), node.list([0]))
