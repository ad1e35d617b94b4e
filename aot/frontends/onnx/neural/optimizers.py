"""Steps of optimisers: new weights and states from gradients.

Of several weights, all weights come first, then all gradients, then all states of each kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from aot.frontends.onnx.registry import OnnxNode, Outputs, onnx
from aot.ir.graph import OutPort

TRAINING = "ai.onnx.preview.training"


def _weights(node: OnnxNode, tensors: Sequence[OutPort], kinds: int) -> Iterator[tuple[OutPort, ...]]:
    """Yield the weight, its gradient and its states for each of the weights."""
    count, rest = divmod(len(tensors), kinds)
    node.refuse(bool(rest) or not count, f"there must be {kinds} tensors for each weight, got {len(tensors)} in all")
    return zip(*(tensors[k * count : (k + 1) * count] for k in range(kinds)), strict=True)


def _together(rows: Sequence[tuple[OutPort, ...]]) -> Outputs:
    """Return the new weights, then the new states of each kind."""
    return Outputs([port for column in zip(*rows, strict=True) for port in column])


def _regularised(node: OnnxNode, x: OutPort, gradient: OutPort) -> OutPort:
    """Return the gradient of the loss with the square of the weights added to it."""
    return node.build.Add(node.build.Multiply(x, node.number("norm_coefficient", 0.0)), gradient)


@onnx("Adagrad", domain=TRAINING)
def adagrad(
    node: OnnxNode, rate: OutPort, time: OutPort, *tensors: OutPort, decay_factor: float = 0.0, epsilon: float = 0.0
) -> Outputs:
    """x - rate / (1 + time decay) g / (sqrt(h) + epsilon), h the sum of all g^2."""
    build = node.build
    passed = node.cast(time, rate.type.dtype)
    slowed = build.Divide(rate, build.Add(build.Multiply(passed, decay_factor), 1.0))
    rows: list[tuple[OutPort, ...]] = []
    for x, g, h in _weights(node, tensors, 3):
        g = _regularised(node, x, g)
        squares = build.Add(h, build.Multiply(g, g))
        step = build.Divide(build.Multiply(slowed, g), build.Add(build.Sqrt(squares), epsilon))
        rows.append((build.Subtract(x, step), squares))
    return _together(rows)


@onnx("Adam", domain=TRAINING)
def adam(
    node: OnnxNode,
    rate: OutPort,
    time: OutPort,
    *tensors: OutPort,
    alpha: float = 0.9,
    beta: float = 0.999,
    epsilon: float = 0.0,
    norm_coefficient_post: float = 0.0,
) -> Outputs:
    """x - rate v / (sqrt(h) + epsilon), v and h running means of g and g^2, corrected from time 1 on."""
    build = node.build
    passed = node.cast(time, rate.type.dtype)
    left = [build.Subtract(node.like(1, rate), build.Power(node.like(mean, rate), passed)) for mean in (alpha, beta)]
    corrected = build.Divide(build.Multiply(rate, build.Sqrt(left[1])), left[0])
    rate = build.Select(build.Greater(time, 0), corrected, rate)
    rows: list[tuple[OutPort, ...]] = []
    for x, g, v, h in _weights(node, tensors, 4):
        g = _regularised(node, x, g)
        mean = build.Add(build.Multiply(v, alpha), build.Multiply(g, 1 - alpha))
        squares = build.Add(build.Multiply(h, beta), build.Multiply(build.Multiply(g, g), 1 - beta))
        step = build.Multiply(rate, build.Divide(mean, build.Add(build.Sqrt(squares), epsilon)))
        rows.append((build.Multiply(build.Subtract(x, step), 1 - norm_coefficient_post), mean, squares))
    return _together(rows)


@onnx("Momentum", domain=TRAINING)
def momentum(
    node: OnnxNode, rate: OutPort, time: OutPort, *tensors: OutPort, alpha: float, beta: float, mode: str
) -> Outputs:
    """x - rate v, v = alpha v + beta g, beta 1 at time 0; Nesterov's: x - rate (g + alpha v)."""
    build = node.build
    node.refuse(mode not in ("standard", "nesterov"), f"mode must be standard or nesterov, got {mode!r}")
    share = build.Select(build.Greater(time, 0), node.like(beta, rate), node.like(1, rate))
    rows: list[tuple[OutPort, ...]] = []
    for x, g, v in _weights(node, tensors, 3):
        g = _regularised(node, x, g)
        moved = build.Add(build.Multiply(v, alpha), build.Multiply(share, g))
        step = moved if mode == "standard" else build.Add(g, build.Multiply(moved, alpha))
        rows.append((build.Subtract(x, build.Multiply(rate, step)), moved))
    return _together(rows)
