"""Arithmetic and activations on quantised tensors, element by element."""

from __future__ import annotations

from aot.frontends.tflite.integers.fixed_point import of_input, requantized, saturated, scaled, shifted, single, whole
from aot.frontends.tflite.registry import TfliteNode, exact
from aot.frontends.tflite.tensors import Quantization
from aot.ir.graph import OutPort
from aot.runtime.abi import DType

BYTES = (DType.I8, DType.U8)
INTEGERS = (*BYTES, DType.I16, DType.I32)
FINE = {DType.I8: 20, DType.U8: 20, DType.I16: 15}  # bits that ADD and SUB add to their operands


def fits(node: TfliteNode, *inputs: OutPort) -> bool:
    """True if all operands and the output are bytes with a scale of the whole tensor."""
    quantized = [node.quantization(i) for i in range(len(inputs))]
    whole_tensors = all(q is not None and not q.is_by_axis and q.scales[0] for q in quantized)
    return whole_tensors and all(x.type.dtype in BYTES for x in inputs) and node.output_type() in BYTES


@exact("ADD", "SUB")
def add(node: TfliteNode, a: OutPort, b: OutPort) -> OutPort:
    """Both operands in units of twice the larger scale, 2^-20 fine."""
    if not fits(node, a, b):
        return node.as_numbers(a, b)
    build, out, fine = node.build, whole(node), FINE[a.type.dtype]
    scales = [of_input(node, i).scales[0] for i in range(2)]
    twice = 2 * max(scales)
    parts: list[OutPort] = []
    for i, x in enumerate((a, b)):
        wide = build.Multiply(shifted(node, x, of_input(node, i)), build.const(1 << fine, DType.I32))
        parts.append(scaled(node, wide, [scales[i] / twice]))
    total = (build.Add if node.kind == "ADD" else build.Subtract)(*parts)
    return saturated(node, scaled(node, total, [twice / ((1 << fine) * out.scales[0])]), out)


@exact("MUL")
def mul(node: TfliteNode, a: OutPort, b: OutPort) -> OutPort:
    if not fits(node, a, b):
        return node.as_numbers(a, b)
    out, scales = whole(node), [of_input(node, i).scales[0] for i in range(2)]
    product = node.build.Multiply(*(shifted(node, x, of_input(node, i)) for i, x in enumerate((a, b))))
    factor = single(single(scales[0] * scales[1]) / out.scales[0])
    return saturated(node, scaled(node, product, [factor]), out)


def same(a: Quantization | None, b: Quantization | None) -> bool:
    return a is not None and a == b


@exact("MAXIMUM", "MINIMUM")
def extreme(node: TfliteNode, a: OutPort, b: OutPort) -> OutPort:
    """Stored numbers are compared where all tensors have one scale, as LiteRT demands."""
    if not all(same(node.quantization(i), node.output_quantization()) for i in range(2)):
        return node.as_numbers(a, b)
    return node.build.Maximum(a, b) if node.kind == "MAXIMUM" else node.build.Minimum(a, b)


@exact("QUANTIZE")
def requantize(node: TfliteNode, x: OutPort) -> OutPort:
    """From one scale to another, exact where the numbers are beyond those of f32."""
    q, out = node.quantization(0), node.output_quantization()
    known = q is not None and not q.is_by_axis and out is not None and not out.is_by_axis and out.scales[0]
    if q is None or not known or any(t not in INTEGERS for t in (x.type.dtype, node.output_type())):
        return node.as_numbers(x)
    return requantized(node, x, q)


ACTIVATIONS: dict[str, tuple[float | None, float | None]] = {
    "RELU": (0.0, None),
    "RELU6": (0.0, 6.0),
    "RELU_0_TO_1": (0.0, 1.0),
    "RELU_N1_TO_1": (-1.0, 1.0),
}


@exact(*ACTIVATIONS)
def relu(node: TfliteNode, x: OutPort) -> OutPort:
    """Requantised, then within the stored limits."""
    if not fits(node, x):
        return node.as_numbers(x)
    build, q, out = node.build, of_input(node, 0), whole(node)
    requantized = saturated(node, scaled(node, shifted(node, x, q), [single(q.scales[0] / out.scales[0])]), out)
    low, high = (None if v is None else _place(v, out) for v in ACTIVATIONS[node.kind])
    least, most = (-128, 127) if requantized.type.dtype is DType.I8 else (0, 255)
    if low is not None and low > least:
        requantized = build.Maximum(requantized, build.const(min(low, most), requantized.type.dtype))
    if high is not None and high < most:
        requantized = build.Minimum(requantized, build.const(max(high, least), requantized.type.dtype))
    return requantized


def _place(x: float, q: Quantization) -> int:
    return q.zeros[0] + int(single(x / q.scales[0]) + (0.5 if x >= 0 else -0.5))


@exact("LEAKY_RELU")
def leaky_relu(node: TfliteNode, x: OutPort) -> OutPort:
    """Factors of their own for numbers above and below 0."""
    if not fits(node, x):
        return node.as_numbers(x)
    build, q, out = node.build, of_input(node, 0), whole(node)
    integers, alpha = shifted(node, x, q), node.number("alpha", 0.0)
    over = scaled(node, integers, [q.scales[0] / out.scales[0]])
    under = scaled(node, integers, [single(q.scales[0] * alpha) / out.scales[0]])
    return saturated(node, build.Select(build.GreaterEqual(integers, build.const(0, DType.I32)), over, under), out)
