"""Small ONNX models on which the extensions in `styles` act, one for each folder, with inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import helper

from tests.frontends.onnx.models import Array, Numbers, i64, model

N = Numbers(3)
X, IMAGE = N.f32(1, 4, 6, 8), N.f32(1, 3, 6, 8)
Made = tuple[onnx.ModelProto, Array]


def node(kind: str, inputs: list[str], output: str, **attrs: Any) -> onnx.NodeProto:
    return helper.make_node(kind, inputs, [output], name=output, **attrs)


def own(kind: str, inputs: list[str], output: str, **attrs: Any) -> onnx.NodeProto:
    return node(kind, inputs, output, domain="me", **attrs)


def network(
    x: Array, *nodes: onnx.NodeProto, outputs: dict[str, tuple[int | str, ...]], opset: int = 11, **constants: Array
) -> onnx.ModelProto:
    """Outputs of f32 with their shapes, as Model Optimizer wants them."""
    made = model(list(nodes), {"x": x}, list(outputs), constants, opset, domain="me")
    del made.graph.output[:]
    made.graph.output.extend(helper.make_tensor_value_info(name, 1, shape) for name, shape in outputs.items())
    made.ir_version = 7  # the newest that Model Optimizer 2024.6 reads
    return made


def conv(source: str, weights: str, output: str, size: int = 1) -> onnx.NodeProto:
    return node("Conv", [source, weights], output, kernel_shape=[size, size], pads=[size // 2] * 4)


def around(kind: str, x: Array, shape: tuple[int, ...], **attrs: Any) -> onnx.ModelProto:
    """Relu, an operation of one's own, Sin."""
    nodes = node("Relu", ["x"], "r"), own(kind, ["r"], "o", **attrs), node("Sin", ["o"], "y")
    return network(x, *nodes, outputs={"y": shape})


def hswish() -> Made:
    nodes = (
        node("Add", ["x", "three"], "a"),
        node("Clip", ["a", "low", "six"], "c"),
        node("Mul", ["x", "c"], "m"),
        node("Div", ["m", "half"], "y"),
    )
    numbers = {"three": 3, "low": 0, "six": 6, "half": 6}
    return network(X, *nodes, outputs={"y": X.shape}, **{k: np.array(v, np.float32) for k, v in numbers.items()}), X


def group_norm() -> Made:
    nodes = (
        node("Reshape", ["x", "parts"], "r"),
        node("InstanceNormalization", ["r", "one", "zero"], "i", epsilon=1e-5),
        node("Reshape", ["i", "whole"], "w"),
        node("Mul", ["w", "g"], "m"),
        node("Add", ["m", "b"], "y"),
    )
    held = {"parts": i64(0, 2, -1), "one": np.ones(2, np.float32), "zero": np.zeros(2, np.float32)}
    held |= {"whole": i64(*X.shape), "g": N.f32(4, 1, 1), "b": N.f32(4, 1, 1)}
    return network(X, *nodes, outputs={"y": X.shape}, **held), X


def mean_to_pool() -> Made:
    nodes = (
        node("Relu", ["x"], "r"),
        node("ReduceMean", ["r"], "m", axes=[2, 3], keepdims=1),
        node("Sin", ["m"], "y"),
    )
    return network(X, *nodes, outputs={"y": (1, 4, 1, 1)}), X


def ssd_head() -> Made:
    x = N.f32(1, 4, 2, 2)
    nodes = (
        conv("x", "wl", "loc_nchw"),
        node("Transpose", ["loc_nchw"], "loc", perm=[0, 2, 3, 1]),
        conv("x", "wc", "conf_nchw"),
        node("Transpose", ["conf_nchw"], "conf_nhwc", perm=[0, 2, 3, 1]),
        node("Sigmoid", ["conf_nhwc"], "conf"),
    )
    shapes = {"loc": (1, 2, 2, 4), "conf": (1, 2, 2, 3)}
    return network(x, *nodes, outputs=shapes, wl=N.f32(4, 4, 1, 1), wc=N.f32(3, 4, 1, 1)), x


def scope_edges() -> Made:
    nodes: list[onnx.NodeProto] = []
    source = "x"
    for i in range(2):
        at = f"net/act_{i}"
        nodes += [conv(source, "w", f"c{i}"), node("Sigmoid", [f"c{i}"], f"{at}/sig")]
        source = f"{at}/mul"
        nodes.append(node("Mul", [f"c{i}", f"{at}/sig"], source))
    return network(X, *nodes, node("Sin", [source], "y"), outputs={"y": X.shape}, w=N.f32(4, 4, 1, 1)), X


def focus() -> Made:
    nodes: list[onnx.NodeProto] = []
    for i, (row, column) in enumerate(((0, 0), (1, 0), (0, 1), (1, 1))):
        nodes.append(node("Slice", ["x", f"from_{row}", "end", "axis_2", "two"], f"i{i}"))
        nodes.append(node("Slice", [f"i{i}", f"from_{column}", "end", "axis_3", "two"], f"o{i}"))
    nodes += [node("Concat", ["o0", "o1", "o2", "o3"], "cat", axis=1), conv("cat", "w", "y")]
    held = {"from_0": i64(0), "from_1": i64(1), "end": i64(2**31 - 1), "axis_2": i64(2), "axis_3": i64(3)}
    return network(IMAGE, *nodes, outputs={"y": (1, 5, 3, 4)}, two=i64(2), w=N.f32(5, 12, 1, 1), **held), IMAGE


def cut_tail() -> Made:
    nodes = (
        conv("x", "w", "c"),
        node("Relu", ["c"], "head/a"),
        node("Tanh", ["c"], "head/b"),
        node("Concat", ["head/a", "head/b"], "cat", axis=1),
        node("Softmax", ["cat"], "y", axis=1),
    )
    return network(X, *nodes, outputs={"y": (1, 8, 6, 8)}, w=N.f32(4, 4, 1, 1)), X


def u8_input() -> Made:
    made = network(
        IMAGE, conv("x", "w", "c", 3), node("Relu", ["c"], "y"), outputs={"y": (1, 4, 6, 8)}, w=N.f32(4, 3, 3, 3)
    )
    return made, N.u8(1, 6, 8, 3)


def skip_norm() -> Made:
    x = N.f32(2, 5, 16)
    nodes = (
        node("Relu", ["x"], "r"),
        own("SkipLayerNormalization", ["x", "r", "g", "b", "bias"], "y", epsilon=1e-5),
    )
    return network(x, *nodes, outputs={"y": x.shape}, g=N.f32(16), b=N.f32(16), bias=N.f32(16)), x


def fold_scale() -> Made:
    nodes = conv("x", "w", "c", 3), node("Mul", ["c", "s"], "m"), node("Relu", ["m"], "y")
    return network(X, *nodes, outputs={"y": (1, 5, 6, 8)}, w=N.f32(5, 4, 3, 3), s=N.f32(1, 5, 1, 1)), X


def grouped_windows() -> Made:
    attrs: dict[str, Any] = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 0, 1, 2], "group": 2}
    nodes = (
        node("Conv", ["x", "w"], "c", **attrs),
        node("Relu", ["c"], "r"),
        node("MaxPool", ["r"], "m", kernel_shape=[3, 2], strides=[2, 3], ceil_mode=1),
        node("AveragePool", ["m"], "y", kernel_shape=[2, 3], pads=[0, 1, 1, 0]),
    )
    return network(X, *nodes, outputs={"y": ("n", 6, "h", "w")}, w=N.f32(6, 2, 3, 3)), X


def own_resize() -> Made:
    attrs = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    nodes = node("Relu", ["x"], "r"), node("Resize", ["r", "roi", "scales"], "y", **attrs)
    held = {"roi": np.zeros(0, np.float32), "scales": np.array([1, 1, 2, 2], np.float32)}
    return network(X, *nodes, outputs={"y": (1, 4, 12, 16)}, **held), X


def old_style() -> Made:
    x = N.f32(2, 3, 4, 5)
    nodes = node("Relu", ["x"], "r"), node("Softmax", ["r"], "s", axis=3), node("Sin", ["s"], "y")
    return network(x, *nodes, outputs={"y": x.shape}, opset=13), x


def complex_abs() -> Made:
    x = N.f32(2, 3, 5, 2)
    return around("ComplexAbs", x, (2, 3, 5), eps=0.5), x


def pixel_shuffle() -> Made:
    x = N.f32(1, 8, 3, 4)
    return around("PixelShuffle", x, (1, 2, 6, 8), upscale_factor=2), x


def transposed_weights() -> Made:
    x = N.f32(3, 5)
    nodes = node("MatMul", ["x", "w"], "m"), node("Add", ["m", "b"], "y")
    return network(x, *nodes, outputs={"y": (3, 7)}, w=N.f32(5, 7), b=N.f32(7)), x


def folded() -> Made:
    nodes = own("Checkerboard", ["sizes"], "k", low=-1.0, high=2.0), node("Mul", ["x", "k"], "y")
    return network(X, *nodes, outputs={"y": X.shape}, sizes=i64(6, 8)), X


def leaky_select() -> Made:
    nodes = node("LeakyRelu", ["x"], "l", alpha=0.25), node("Sin", ["l"], "y")
    return network(X, *nodes, outputs={"y": X.shape}), X


MAKERS: dict[str, Callable[[], Made]] = {
    "bilinear_deconv": lambda: (around("UpBilinear", X, (1, 4, 12, 16), channels=4), X),
    "complex_abs": complex_abs,
    "cut_tail": cut_tail,
    "edge_pad": lambda: (around("EdgePad", X, (1, 4, 6, 13), widths=[2, 3]), X),
    "focus": focus,
    "fold_scale": fold_scale,
    "folded": folded,
    "glu": lambda: (around("GLU", X, (1, 2, 6, 8), axis=1), X),
    "group_norm": group_norm,
    "hswish": hswish,
    "leaky_select": leaky_select,
    "mean_to_pool": mean_to_pool,
    "old_style": old_style,
    "own_resize": own_resize,
    "pixel_shuffle": pixel_shuffle,
    "scope_edges": scope_edges,
    "skip_norm": skip_norm,
    "ssd_head": ssd_head,
    "transposed_weights": transposed_weights,
    "u8_input": u8_input,
    "grouped_windows": grouped_windows,
}

MODELS = {name: make() for name, make in MAKERS.items()}  # all of them, so that each has the same numbers in each run
