"""Mixtures of experts, in domain com.microsoft: each row goes through the k experts that its router chooses.

rows sorted by expert:  y = act(x W1[e] + b1[e]) W2[e] + b2[e]     out[row] = sum over its experts of weight y
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.frontends.onnx.microsoft.blocks import unpacked
from aot.frontends.onnx.microsoft.operations import MS
from aot.frontends.onnx.registry import OnnxNode, onnx
from aot.ir.graph import OutPort
from aot.ir.types import Array
from aot.opset.elementwise.activation import Approximation
from aot.opset.reduction.sorting import Mode, Order
from aot.runtime.abi import DType
from aot.runtime.errors import ModelError


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer of all experts: matrices [experts, outputs, inputs], and biases [experts, outputs]."""

    matrices: OutPort
    bias: OutPort | None


@onnx("MoE", domain=MS)
def experts(
    node: OnnxNode,
    x: OutPort,
    router: OutPort,
    first: OutPort,
    first_bias: OutPort | None,
    second: OutPort,
    second_bias: OutPort | None = None,
    gate: OutPort | None = None,
    gate_bias: OutPort | None = None,
) -> OutPort:
    """Weights of the sum are the softmax over all experts."""
    shares, indices = _chosen(node, node.build.Softmax(router, axis=-1))
    if node.flag("normalize_routing_weights"):
        shares = node.build.Divide(shares, node.build.ReduceSum(shares, node.list([-1]), keep_dims=True))
    layers = (Layer(first, first_bias), Layer(second, second_bias))
    return _mixed(node, x, (shares, indices), layers, None if gate is None else Layer(gate, gate_bias))


@onnx("QMoE", domain=MS)
def quantized_experts(
    node: OnnxNode,
    x: OutPort,
    router: OutPort,
    first: OutPort,
    first_scales: OutPort,
    first_bias: OutPort | None,
    second: OutPort,
    second_scales: OutPort,
    second_bias: OutPort | None = None,
    gate: OutPort | None = None,
    gate_scales: OutPort | None = None,
    gate_bias: OutPort | None = None,
    first_zeros: OutPort | None = None,
    second_zeros: OutPort | None = None,
    gate_zeros: OutPort | None = None,
    router_weights: OutPort | None = None,
) -> OutPort:
    """Weights of the sum are the softmax over the experts that are chosen, or `router_weights`."""
    kind = node.text("quant_type", "int")
    node.refuse(kind != "int", f"weights of integers are supported, got quant_type {kind!r}")
    node.refuse(node.integer("weights_prepacked", -1) == 1, "packed weights of another runtime are not supported")
    build = node.build
    values, indices = _chosen(node, router)
    if router_weights is None:
        shares = build.Softmax(values, axis=-1)
    else:
        shares = build.GatherElements(router_weights, indices, axis=-1)
        if node.flag("normalize_routing_weights"):
            shares = build.Divide(shares, build.ReduceSum(shares, node.list([-1]), keep_dims=True))
    dtype = x.type.dtype
    layers = (
        Layer(_matrices(node, "fc1", (first, first_scales, first_zeros), dtype), first_bias),
        Layer(_matrices(node, "fc2", (second, second_scales, second_zeros), dtype), second_bias),
    )
    third = None
    if gate is not None:
        scales = node.present(gate_scales, "fc3_scales")
        third = Layer(_matrices(node, "fc3", (gate, scales, gate_zeros), dtype), gate_bias)
    return _mixed(node, x, (shares, indices), layers, third)


def _chosen(node: OnnxNode, router: OutPort) -> tuple[OutPort, OutPort]:
    """Return the k largest values of each row, and their experts."""
    node.refuse(node.flag("use_sparse_mixer"), "use_sparse_mixer is not supported")
    count = node.scalar(node.integer("k", 1))
    top = node.build.TopK(router, count, axis=-1, stable=True, index_element_type=DType.I64, outputs=2)
    return top, top.node.out_port(1)


def _matrices(node: OnnxNode, layer: str, parts: tuple[OutPort, OutPort, OutPort | None], dtype: DType) -> OutPort:
    """Return the matrices of a layer, (number - zero) scale; a scale belongs to a row or to a block of one."""
    bits = node.integer(f"{layer}_expert_weight_bits", node.integer("expert_weight_bits", 4))
    node.refuse(bits not in (2, 4, 8), f"weights of 2, 4 and 8 bits are supported, got {bits}")
    levels = unpacked(node.known(parts[0], "weights"), bits)
    scales = node.known(parts[1], "scales").astype(np.float32)
    scales = scales[..., None] if scales.ndim == 2 else scales  # [experts, rows, blocks]
    fits = levels.ndim == scales.ndim == 3 and scales.size and levels.shape[:2] == scales.shape[:2]
    if not fits or levels.shape[2] % scales.shape[2]:
        raise ModelError(f"{node.kind}: scales of {layer} must be those of rows or their blocks, got {parts[1].type}")
    zeros: Array | float = 2.0 ** (bits - 1)
    if parts[2] is not None:
        zero_points, axis = unpacked(node.known(parts[2], "zero points"), bits), parts[2].type.rank - 1
        zero_points = zero_points[..., : scales.shape[axis]] if axis in (1, 2) else zero_points
        if zero_points.size != scales.size:
            raise ModelError(f"{node.kind}: a zero point of {layer} must belong to each scale, got {parts[2].type}")
        zeros = zero_points.reshape(*scales.shape, 1).astype(np.float32)
    blocks = levels.reshape(*scales.shape, -1)
    return node.build.const(((blocks - zeros) * scales[..., None]).reshape(levels.shape), dtype)


def _mixed(
    node: OnnxNode,
    x: OutPort,
    routes: tuple[OutPort, OutPort],
    layers: tuple[Layer, Layer],
    gate: Layer | None,
) -> OutPort:
    """Return the sums of the rows' experts. `routes`: the weights of the sum and the experts, [rows, k]."""
    build, (shares, indices) = node.build, routes
    count = node.integer("k", 1)
    number = node.extent(layers[0].matrices, 0, "the number of experts")
    width = node.extent(x, x.type.rank - 1, "the size of rows")
    rows = build.Reshape(x, node.list([-1, width]))
    expert, order = _sorted(node, build.Reshape(indices, node.list([-1])))
    ends = build.SearchSorted(expert, node.list(range(number)), right_mode=True, output_type=DType.I64)
    sent = build.Gather(rows, build.Divide(order, count), node.scalar(0))

    def through(layer: Layer, y: OutPort) -> OutPort:
        port = build.GroupedMatMul(y, layer.matrices, ends)
        return port if layer.bias is None else build.Add(port, build.Gather(layer.bias, expert, node.scalar(0)))

    inner = _activated(node, through(layers[0], sent), None if gate is None else through(gate, sent))
    back = build.Gather(through(layers[1], inner), _sorted(node, order)[1], node.scalar(0))
    apart = build.Reshape(back, node.list([-1, count, width]))
    weighted = build.Multiply(apart, build.Unsqueeze(shares, node.list([-1])))
    return build.Reshape(build.ReduceSum(weighted, node.list([1])), node.dims(x, range(x.type.rank)))


def _sorted(node: OnnxNode, numbers: OutPort) -> tuple[OutPort, OutPort]:
    """Return the elements of a vector in ascending order, and their places."""
    port = node.build.TopK(
        numbers,
        node.size(numbers, 0),
        axis=0,
        mode=Mode.MIN,
        sort=Order.VALUE,
        index_element_type=DType.I64,
        stable=True,
        outputs=2,
    )
    return port, port.node.out_port(1)


def _activated(node: OnnxNode, y: OutPort, gate: OutPort | None) -> OutPort:
    """Return the activation of `y`; times the linear layer `gate`, where there is one."""
    build, name = node.build, node.text("activation_type", "relu")
    activations: dict[str, Callable[[OutPort], OutPort]] = {
        "identity": lambda p: p,
        "relu": build.Relu,
        "silu": build.Swish,
        "gelu": lambda p: build.Gelu(p, approximation_mode=Approximation.TANH),
    }
    node.refuse(name not in (*activations, "swiglu"), f"activation {name} is not supported")
    if name != "swiglu":
        return activations[name](y) if gate is None else build.Multiply(activations[name](y), gate)
    linear = gate
    if linear is None:
        y, linear = _halves(node, y)
    return _swiglu(node, y, linear)


def _halves(node: OnnxNode, y: OutPort) -> tuple[OutPort, OutPort]:
    """Return the gates and the linear parts of rows that hold both."""
    fusion, build = node.integer("swiglu_fusion", 0), node.build
    half = node.extent(y, 1, "the size of rows") // 2
    if fusion == 1:
        pairs = build.Reshape(y, node.list([-1, half, 2]))
        return (
            build.Gather(pairs, node.scalar(0), node.scalar(2)),
            build.Gather(pairs, node.scalar(1), node.scalar(2)),
        )
    node.refuse(fusion != 2, "swiglu without fc3 needs swiglu_fusion 1 or 2")
    parts = build.Split(y, node.scalar(1), num_splits=2, outputs=2)
    return parts, parts.node.out_port(1)


def _swiglu(node: OnnxNode, gate: OutPort, linear: OutPort) -> OutPort:
    """g sigmoid(alpha g) (l + beta), with g and l bounded."""
    build, limit = node.build, node.number("swiglu_limit", float("inf"))
    if np.isfinite(limit):
        gate = build.Minimum(gate, node.like(limit, gate))
        linear = build.Clamp(linear, min=-limit, max=limit)
    swish = build.Swish(gate, node.like(node.number("activation_alpha", 1.0), gate))
    beta = node.number("activation_beta", 0.0)
    return build.Multiply(swish, build.Add(linear, node.like(beta, linear)) if beta else linear)
