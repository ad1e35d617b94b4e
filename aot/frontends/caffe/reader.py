"""Reads networks of Caffe: layers of .prototxt become foreign nodes, with blobs of .caffemodel as inputs.

layer { name: "relu" bottom: "conv" top: "conv" }      a layer in place: from here on "conv" is its result
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.frontends.caffe.files import TEXT, network_and_weights
from aot.frontends.caffe.kinds import EACH, FROM_FILES, INPUTS, blob_name
from aot.frontends.caffe.layers import attributes, layers_of
from aot.frontends.caffe.messages import Message, array, network, weights
from aot.ir.graph import Graph, OutPort
from aot.ir.op import Foreign
from aot.ir.origin import Origin
from aot.ir.types import Array
from aot.ir.values.estimate import check_table
from aot.opset.control.infrastructure import Constant, Parameter, Result
from aot.runtime.abi import DType
from aot.runtime.errors import CorruptError, UsageError


def read(path: Path, other: Path | None = None) -> Graph:
    """Return the network of a file of either kind, in dialect `caffe`; `other`: the file of the other kind.

    Without weights it is read, too, if no layer needs any. CorruptError for a file that is damaged; UnsupportedError
    for fields that Caffe does not have.
    """
    text, binary = network_and_weights(path, other)
    if text is None:
        rule = f"the layers are in a text file beside the weights, {path.stem}{TEXT}"
        raise UsageError(f"{path.name}: {rule}, got none")
    return _Reader(text.name, _blobs(binary)).run(network(text))


def _blobs(path: Path | None) -> dict[str, list[Array]]:
    """Return the blobs of layers by their names."""
    if path is None:
        return {}
    message = weights(path)
    layers = [*message.layer, *message.layers]
    return {layer.name: [array(b, f"{path.name}: {layer.name}") for b in layer.blobs] for layer in layers}


@dataclass(slots=True)
class _Reader:
    file: str
    blobs: dict[str, list[Array]]
    ports: dict[str, OutPort] = field(default_factory=dict[str, OutPort])  # by the names of blobs
    unread: dict[str, None] = field(default_factory=dict[str, None])
    graph: Graph = field(default_factory=Graph)

    def run(self, net: Message) -> Graph:
        """Return the graph of a network."""
        self.graph.name, self.graph.file = net.name, self.file
        for name, sizes in zip(net.input, self._declared(net), strict=True):
            self._parameter(name, sizes)
        for layer in layers_of(net, self.file):
            self._layer(layer)
        if not self.unread:
            raise CorruptError(
                f"{self.file}: a network of Caffe must have outputs, blobs that no layer reads, got none"
            )
        for name, port in self.ports.items():
            port.names = (name,)
        for name in self.unread:
            node = self.graph.add(Result(), self.ports[name], name=name, origin=Origin((name,), self.file))
            node.out_port(0).names = (name,)
        return self.graph

    def _declared(self, net: Message) -> list[tuple[int, ...]]:
        """Return the shapes of the inputs that stand before the layers."""
        shapes = [tuple(shape.dim) for shape in net.input_shape]
        dims = list(net.input_dim)
        if not shapes and dims:
            shapes = [tuple(dims)] if len(net.input) == 1 else [tuple(dims[i : i + 4]) for i in range(0, len(dims), 4)]
        if len(shapes) != len(net.input) or (len(shapes) > 1 and dims and len(dims) != 4 * len(shapes)):
            rule = f"{self.file}: input_shape, or four times input_dim, for each of {len(net.input)} inputs"
            raise CorruptError(f"{rule}, got {len(shapes)}")
        return shapes

    def _parameter(self, name: str, sizes: Sequence[int]) -> None:
        if any(n < 0 for n in sizes):
            raise CorruptError(f"{self.file}: input {name!r}: sizes must not be negative, got {list(sizes)}")
        op = Parameter(DType.F32, tuple(sizes))
        self.ports[name] = self.graph.add(op, name=name, origin=Origin((name,), self.file)).out_port(0)

    def _layer(self, layer: Message) -> None:
        """Add the nodes of a layer."""
        bottoms = [self._bottom(layer, name) for name in layer.bottom]
        if layer.type in INPUTS:
            for name, sizes in zip(layer.top, _sizes(layer), strict=False):
                self._parameter(name, sizes)
        elif layer.type == "DummyData":
            self._define(layer, [self._filled(layer, i) for i in range(len(layer.top))])
        elif layer.type == "Split":
            self._define(layer, bottoms * len(layer.top))
        elif layer.type in EACH and len(bottoms) > 1:
            self._define(layer, [self._node(layer, [b], 1, f"{layer.name}/{i}")[0] for i, b in enumerate(bottoms)])
        elif layer.type != "Silence":
            self._define(layer, self._node(layer, bottoms, len(layer.top), layer.name))

    def _bottom(self, layer: Message, name: str) -> OutPort:
        if name not in self.ports:
            raise CorruptError(
                f"{self.file}: layer {layer.name!r}: a layer before it must give blob {name!r}, got none"
            )
        self.unread.pop(name, None)
        return self.ports[name]

    def _define(self, layer: Message, ports: Sequence[OutPort]) -> None:
        if len(ports) < len(layer.top):
            raise CorruptError(f"{self.file}: layer {layer.name!r} must have {len(ports)} tops, got {len(layer.top)}")
        for name, port in zip(layer.top, ports, strict=False):
            self.ports[name] = port
            self.unread[name] = None

    def _node(self, layer: Message, bottoms: Sequence[OutPort], outputs: int, name: str) -> list[OutPort]:
        """Add a foreign node. Its inputs are the bottoms and the blobs of a layer."""
        attrs: dict[str, Any] = {"bottoms": len(bottoms), **attributes(layer)}
        if layer.type in FROM_FILES:
            rule = "a layer that reads a data set: give the network for deployment, deploy.prototxt, whose inputs have"
            attrs["unsupported"] = f"{rule} the type Input"
        blobs = [
            self._constant(blob, f"{layer.name}/{blob_name(i)}")
            for i, blob in enumerate(self.blobs.get(layer.name, ()))
        ]
        op = Foreign("caffe", layer.type, tuple(attrs.items()))
        origin = Origin((layer.name,), self.file)
        node = self.graph.add(op, *bottoms, *blobs, name=name, origin=origin, outputs=outputs)
        return list(node.out_ports().values())

    def _constant(self, data: Array, name: str) -> OutPort:
        origin = Origin((name,), self.file)
        return self.graph.add(Constant(DType.F32), name=name, origin=origin, data=data).out_port(0)

    def _filled(self, layer: Message, i: int) -> OutPort:
        """Add the constant of a layer that gives the same data in each inference."""
        param = layer.dummy_data_param
        old = [getattr(param, n) for n in ("num", "channels", "height", "width")]
        shapes: list[Any] = [s.dim for s in param.shape] or [list(s) for s in zip(*old, strict=False)]
        if not shapes:
            raise CorruptError(f"{self.file}: layer {layer.name!r}: DummyData must have shapes, got none")
        sizes = tuple(shapes[i if i < len(shapes) else 0])
        fillers = list(param.data_filler)
        filler = fillers[i if i < len(fillers) else 0] if fillers else None
        if filler is not None and filler.type != "constant":
            attrs = (("unsupported", f"data are constant, got {filler.type}"),)
            return self.graph.add(Foreign("caffe", layer.type, attrs), name=layer.name).out_port(0)
        check_table(layer.name, *sizes, itemsize=4)
        return self._constant(np.full(sizes, 0.0 if filler is None else filler.value, np.float32), layer.top[i])


def _sizes(layer: Message) -> list[tuple[int, ...]]:
    """Return the shapes of the tops of a layer that is an input."""
    if layer.type == "Input":
        shapes = [tuple(shape.dim) for shape in layer.input_param.shape]
        return shapes * len(layer.top) if len(shapes) == 1 else shapes
    memory = layer.memory_data_param
    return [(memory.batch_size, memory.channels, memory.height, memory.width), (memory.batch_size,)]
