"""Convolutions and pools of Model Optimizer's: with `group`, and with channels last.

Convolution(x, w [O, I, ..]), group = g     ->  GroupConvolution(x, Reshape(w, [g, O / g, I, ..]))
Deconvolution(x, w [I, O, ..]), group = g   ->  GroupConvolutionBackpropData(x, Reshape(w, [g, I / g, O, ..]))
MaxPool(x), channels last                   ->  Transpose(MaxPool(Transpose(x)))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from aot.ir.graph import OutPort
from aot.ir.op import Op as Definition
from aot.mo.bridge.operation import is_new
from aot.mo.utils.error import Error
from aot.opset.movement.gather import Gather
from aot.opset.movement.movement import Transpose
from aot.opset.movement.shape import Reshape, ShapeOf, Unsqueeze
from aot.opset.products.convolution import Convolution, GroupConvolution
from aot.opset.products.deconvolution import ConvolutionBackpropData, GroupConvolutionBackpropData
from aot.passes.permutation import Order
from aot.runtime.errors import AotError

GROUPED: dict[type[Definition], type[Definition]] = {
    Convolution: GroupConvolution,
    ConvolutionBackpropData: GroupConvolutionBackpropData,
}
PLANE = 2  # spatial axes of these
WINDOWED = (
    "Convolution",
    "GroupConvolution",
    "Deconvolution",
    "ConvolutionBackpropData",
    "MaxPool",
    "AvgPool",
    "Pooling",
)
CHANNELS: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {  # inputs and outputs with four dimensions, by type
    **dict.fromkeys(
        "RegionYolo ReorgYolo PSROIPooling ROIPooling ROIAlign DepthToSpace SpaceToDepth ShuffleChannels GRN".split(),
        ((0,), (0,)),
    ),
    "DeformablePSROIPooling": ((0, 2), (0,)),
    "Proposal": ((0, 1), ()),
}
Add = Callable[[Definition, Sequence[OutPort | None], str], OutPort]
Constants = Callable[[Any, str], OutPort]


def complete(node: Any) -> None:
    """Set `spatial_dims` of a node that names its other dimensions, as Model Optimizer's inference did."""
    if node.soft_get("type") not in WINDOWED or node.has_valid("spatial_dims"):
        return
    known = next((node[name] for name in ("stride", "window", "pad", "dilation") if node.has_valid(name)), None)
    if known is None or not node.has_valid("channel_dims") or not node.has_valid("batch_dims"):
        return
    others = {int(d) for name in ("channel_dims", "batch_dims") for d in np.asarray(node[name]).reshape(-1)}
    node["spatial_dims"] = np.array([d for d in range(len(known)) if d not in others], np.int64)


def is_channels_last(node: Any) -> bool:
    """True for a convolution or a pool of data with channels last."""
    if node.soft_get("type") not in WINDOWED or not node.has_valid("spatial_dims"):
        return False
    spatial_dims = np.asarray(node.spatial_dims).reshape(-1)
    return bool(len(spatial_dims)) and int(spatial_dims[0]) == 1


def channel_tensors(node: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the inputs and outputs that an operation of the sets has with channels first, in a graph of NHWC.

    Only of a node that an extension has made: nodes of the file stand between Transposes.
    """
    if node.graph.graph.get("layout") != "NHWC" or node.has_and_set("nchw_layout") or not is_new(node):
        return (), ()
    type_ = str(node.soft_get("type", node.soft_get("op")))
    inputs, outputs = CHANNELS.get(type_, ((), ()))
    return inputs, () if type_ == "RegionYolo" and node.has_and_set("do_softmax") else outputs


def reads_sizes(node: Any) -> bool:
    """True for an extension's PriorBox: it reads feature maps; the one of operation sets reads their sizes."""
    return node.soft_get("type") in ("PriorBox", "PriorBoxClustered") and is_new(node)


def _is_map(port: OutPort | None) -> bool:
    """True for a tensor of four dimensions; in the front phase also for one that is computed of no sizes."""
    if port is None:
        return False
    try:
        return port.type.rank == PLANE + 2
    except AotError:
        kind = getattr(port.node.op, "kind", "")
        return kind not in ("Shape", "Slice", "StridedSlice", "Gather", "Concat", "ConcatV2", "Cast", "Pack")


def to_first(axes: int) -> Order:
    """Return the order of a Transpose to channels first, for a number of spatial axes."""
    return (0, axes + 1, *range(1, axes + 1))


def to_last(axes: int) -> Order:
    """Return the order of a Transpose to channels last."""
    return (0, *range(2, axes + 2), 1)


def grouped_shape(node: Any, shape: Sequence[int], group: int) -> list[int]:
    """Return the shape of weights in groups; of a convolution, [group, outputs, inputs, ..]. Error if they do not fit.

    `shape`: of weights in the order of the operation sets; of TensorFlow's depthwise ones, [channels, factor, ..].
    """
    name = node.soft_get("name", node.id)
    if group < 1 or shape[0] % group:
        raise Error("{}: group divides the first dimension of the weights, got {} and {}", name, group, list(shape))
    known = is_channels_last(node) and node.soft_get("type") == "Convolution" and node.has_valid("output")
    filters = int(np.asarray(node.output).item()) if known else shape[0]
    if filters < 1 or filters % group or (shape[0] * shape[1]) % filters:
        raise Error("{}: group divides the number of outputs, got {} and {}", name, group, filters)
    return [group, filters // group, shape[0] * shape[1] // filters, *shape[2:]]


class Windows:
    """Nodes around a convolution or a pool. `add` adds a node, `constant` a constant."""

    def __init__(self, node: Any, add: Add, constant: Constants) -> None:
        self.node, self.add, self.constant = node, add, constant
        self.name = node.soft_get("name", node.id)
        self.axes = [int(d) for d in node.spatial_dims] if node.has_valid("spatial_dims") else []
        self.channels = channel_tensors(node)
        self.measures = False

    def inputs(self, op: Definition, sources: list[OutPort | None]) -> tuple[Definition, list[OutPort | None]]:
        """Return the operation and its inputs in the layout and the shapes of the operation sets."""
        ports = list(sources)
        if reads_sizes(self.node):
            self.measures = any(_is_map(port) for port in ports)
            ports = [self._sizes(port, i) if _is_map(port) else port for i, port in enumerate(ports)]
        for idx in self.channels[0]:
            ports[idx] = self._transposed(ports[idx], to_first(PLANE), f"data_{idx}")
        if is_channels_last(self.node):
            ports[0] = self._transposed(ports[0], to_first(len(self.axes)), "data")
            if self.node.has_valid("get_weights_permute") and len(ports) > 1:
                ports[1] = self._transposed(ports[1], tuple(map(int, self.node.get_weights_permute.perm)), "weights")
        grouped, group = GROUPED.get(type(op)), self._group(sources)
        if grouped is None or group == 1 or len(ports) < 2:
            return op, ports
        attrs = {f.name: getattr(op, f.name) for f in fields(op)}
        return grouped(**attrs), [ports[0], self._split(ports[1], group), *ports[2:]]

    def output(self, port: OutPort) -> OutPort:
        """Return an output in the layout of the node's consumers."""
        axes = PLANE if port.idx in self.channels[1] else len(self.axes) if is_channels_last(self.node) else 0
        result = self._transposed(port, to_last(axes), "result") if axes else port
        assert result is not None, "an output is there"
        if self.measures:
            name = f"{self.name}/result"
            return self.add(Unsqueeze(), [result, self.constant(np.array([0]), f"{name}/axis")], name)
        return result

    def _sizes(self, port: OutPort | None, idx: int) -> OutPort:
        """Return height and width of a map of features."""
        name, last = f"{self.name}/sizes_{idx}", self.node.graph.graph.get("layout") == "NHWC"
        axes = self.constant(np.array([1, 2] if last else [2, 3]), f"{name}/places")
        shape = self.add(ShapeOf(), [port], f"{name}/shape")
        return self.add(Gather(), [shape, axes, self.constant(np.array(0), f"{name}/axis")], name)

    def _transposed(self, port: OutPort | None, order: Order, what: str) -> OutPort | None:
        if port is None:
            return None
        name = f"{self.name}/{what}"
        return self.add(Transpose(), [port, self.constant(np.array(order), f"{name}/order")], name)

    def _group(self, sources: list[OutPort | None]) -> int:
        if self.node.has_valid("group"):
            return int(np.asarray(self.node.group).item())
        shape = _shape(sources[1]) if len(sources) > 1 else None
        if shape is None or not callable(self.node.soft_get("get_group", None)):
            return 1
        self.node["kernel_shape"] = np.array(shape, np.int64)
        try:
            return int(np.asarray(self.node.get_group(self.node)).item())
        except (AttributeError, KeyError, TypeError):
            return 1  # it asks for a shape of the data, which the front phase does not know

    def _split(self, weights: OutPort | None, group: int) -> OutPort:
        """Return weights with the first dimension split into groups."""
        shape = _shape(weights)
        if weights is None or shape is None:
            raise Error("{}: a convolution with group above 1 has weights of a known shape, got none", self.name)
        pattern = self.constant(np.array(grouped_shape(self.node, shape, group)), f"{self.name}/groups")
        return self.add(Reshape(), [weights, pattern], f"{self.name}/grouped")


def _shape(port: OutPort | None) -> list[int] | None:
    """Return the shape of a tensor if all of it is known."""
    if port is None:
        return None
    if port.node.type == "Transpose":  # of this module: its input may be all that is known
        before, order = _shape(port.node.source(0)), port.node.source(1).node.data
        return None if before is None or order is None else [before[int(d)] for d in order]
    if port.node.data is not None:
        return [int(d) for d in port.node.data.shape]
    try:
        dims = port.type.dims
    except AotError:
        return None
    known = [d for d in dims or () if isinstance(d, int)]
    return known if dims is not None and len(known) == len(dims) else None
