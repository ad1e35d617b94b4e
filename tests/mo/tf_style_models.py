"""Small frozen graphs of TensorFlow on which the extensions in `styles` act, one for each folder, with inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.frontends.onnx.models import Array, Numbers
from tests.frontends.tf.graphs import FLOAT, INT32, messages, node, tensor

N = Numbers(5)
X = N.f32(1, 6, 8, 4)
Made = tuple[Any, Array]


class Net:
    """A frozen graph that is written node by node; `x` is its input."""

    def __init__(self, x: Array) -> None:
        self.graph = messages.GraphDef()
        node(self.graph.node, "Placeholder", "x", dtype=FLOAT, shape=list(x.shape))

    def add(self, op: str, name: str, *inputs: str, **attrs: Any) -> Net:
        node(self.graph.node, op, name, *inputs, T_type=FLOAT, **attrs)
        return self

    def constant(self, name: str, value: Any) -> Net:
        data = np.asarray(value)
        dtype = {"f": FLOAT, "i": INT32}[data.dtype.kind]
        data = data.astype(np.float32 if dtype == FLOAT else np.int32)
        held = tensor(dtype, data.shape, tensor_content=data.tobytes())
        node(self.graph.node, "Const", name, dtype=dtype, value=held)
        return self

    def lists(self, **lists: list[int] | list[float]) -> Net:
        """Give the last node attributes that are lists."""
        for name, values in lists.items():
            held = self.graph.node[-1].attr[name].list
            (held.i if isinstance(values[0], int) else held.f).extend(values)
        return self

    def conv(self, name: str, source: str, weights: Array, op: str = "Conv2D") -> Net:
        self.constant(f"{name}/weights", weights).add(op, name, source, f"{name}/weights", padding=b"SAME")
        self.graph.node[-1].attr["data_format"].s = b"NHWC"
        return self.lists(strides=[1, 1, 1, 1], dilations=[1, 1, 1, 1])

    @staticmethod
    def graph_of(graph: Any, last: str) -> Any:
        """Return the graph up to a node, which is its output then."""
        made = messages.GraphDef()
        names = [n.name for n in graph.node]
        made.node.extend(graph.node[: names.index(last) + 1])
        return made

    def reduce(self, op: str, name: str, source: str, axes: list[int], *, keep_dims: bool = True) -> Net:
        self.constant(f"{name}/axes", np.array(axes, np.int32)).add(
            op, name, source, f"{name}/axes", keep_dims=keep_dims
        )
        self.graph.node[-1].attr["Tidx"].type = INT32
        return self


def custom_op() -> Made:
    net = Net(X).conv("conv", "x", N.f32(3, 3, 4, 3))
    net.add("SoftClip", "clip", "conv", mode=b"tanh").lists(centers=[0.5, -0.25, 0.0])
    net.graph.node[-1].attr["limit"].f = 0.75
    return net.add("Relu", "y", "clip").graph, X


def scope_norm() -> Made:
    net = Net(X).conv("conv", "x", N.f32(1, 1, 4, 4)).constant("eps", np.float32(0.001))
    source = "conv"
    for i in (1, 2):
        scope = f"net/norm_{i}"
        net.reduce("Mean", f"{scope}/mean", source, [1, 2])
        net.add("SquaredDifference", f"{scope}/diff", source, f"{scope}/mean")
        net.reduce("Mean", f"{scope}/variance", f"{scope}/diff", [1, 2])
        net.add("AddV2", f"{scope}/eps", f"{scope}/variance", "eps").add("Rsqrt", f"{scope}/rsqrt", f"{scope}/eps")
        net.add("Sub", f"{scope}/centered", source, f"{scope}/mean")
        net.add("Mul", f"{scope}/normed", f"{scope}/centered", f"{scope}/rsqrt")
        source = f"act_{i}"
        net.add("Relu6", source, f"{scope}/normed")
    return net.graph, X


def points() -> Made:
    net = Net(X).add("Identity", "pre/begin", "x").constant("pre/mean", np.array([1, 2, 3, 4], np.float32))
    net.constant("pre/scale", np.float32(3)).add("Sub", "pre/sub", "pre/begin", "pre/mean")
    net.add("Mul", "pre/scaled", "pre/sub", "pre/scale").add("Abs", "pre/abs", "pre/scaled").add(
        "Relu", "pre/end", "pre/abs"
    )
    return net.conv("y", "pre/end", N.f32(3, 3, 4, 2)).graph, X


def general() -> Made:
    net = Net(X).conv("net/conv_1", "x", N.f32(3, 3, 4, 4)).add("Relu", "net/relu_1", "net/conv_1")
    net.constant("net/b", N.f32(4)).add("BiasAdd", "net/bias", "net/relu_1", "net/b", data_format=b"NHWC")
    net.add("Relu", "net/relu_2", "net/bias").add("Exp", "net/exp", "net/relu_2")
    return net.add("Tanh", "y", "net/exp").graph, X


def middle_mean() -> Made:
    net = Net(X).conv("conv", "x", N.f32(1, 1, 4, 3)).reduce("Mean", "mean", "conv", [1, 2])
    return net.add("Mul", "y", "conv", "mean").graph, X


def conv_ext() -> Made:
    net = Net(X).conv("depth", "x", N.f32(3, 3, 4, 2), "DepthwiseConv2dNative").add("Relu", "r", "depth")
    return net.conv("y", "r", N.f32(2, 3, 8, 3)).graph, X


def fold_scale() -> Made:
    net = Net(X).conv("conv", "x", N.f32(3, 3, 4, 3)).constant("scale", N.f32(3)).add("Mul", "m", "conv", "scale")
    return net.add("Sigmoid", "y", "m").graph, X


def scaled_rows() -> Made:
    net = Net(X).conv("depth", "x", N.f32(3, 3, 4, 2), "DepthwiseConv2dNative").constant("scale", N.f32(8))
    net.add("Mul", "m", "depth", "scale").add("Relu", "r", "m").add("MaxPool", "pool", "r", padding=b"SAME")
    net.graph.node[-1].attr["data_format"].s = b"NHWC"
    return net.lists(ksize=[1, 1, 1, 1], strides=[1, 2, 2, 1]).conv("y", "pool", N.f32(1, 1, 8, 3)).graph, X


MAKERS: dict[str, Callable[[], Made]] = {
    "tf_conv_ext": conv_ext,
    "tf_custom_op": custom_op,
    "tf_fold_scale": fold_scale,
    "tf_general": general,
    "tf_middle_mean": middle_mean,
    "tf_points": points,
    "tf_scope_norm": scope_norm,
    "tf_scaled_rows": scaled_rows,  # last: the numbers of the others stay
}

MODELS = {name: make() for name, make in MAKERS.items()}  # all of them, so that each has the same numbers in each run
