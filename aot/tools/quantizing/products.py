"""Products of data with constant weights: the operations of a network that quantisation changes."""

from __future__ import annotations

from math import prod

from aot.codegen.dataclass import dataclass
from aot.ir.graph import Graph, Node, OutPort
from aot.ir.types import Array
from aot.opset.products.convolution import Convolution, GroupConvolution
from aot.opset.products.deconvolution import ConvolutionBackpropData, GroupConvolutionBackpropData
from aot.opset.products.matmul import MatMul
from aot.opset.recurrent.recurrent_cells import Recurrent
from aot.passes.weights.matrices import constant_floats
from aot.runtime.abi import DType

# Dimensions of weights that are not summed; for MatMul they depend on its attributes.
_OUTER: dict[type, tuple[int, ...]] = {
    Convolution: (0,),
    GroupConvolution: (0, 1),
    ConvolutionBackpropData: (1,),
    GroupConvolutionBackpropData: (0, 2),
}
_DATA, _WEIGHTS = 0, 1  # inputs of all products


@dataclass(frozen=True, slots=True)
class Product:
    """A product `node` with constant `weights` in f32; `outer`: the dimensions of weights that are not summed."""

    node: Node
    weights: Array
    outer: tuple[int, ...]

    @property
    def layer(self) -> str:
        """The name of the layer in the user's file."""
        return self.node.origin.layers[0] if self.node.origin.layers else self.node.name

    @property
    def data(self) -> OutPort:
        return self.node.source(_DATA)

    @property
    def sums(self) -> tuple[int, ...]:
        """Dimensions of weights that are summed."""
        return tuple(k for k in range(self.weights.ndim) if k not in self.outer)

    @property
    def channel(self) -> int:
        """Dimension of the result along which weights differ."""
        return self.node.out_port().type.rank - 1 if isinstance(self.node.op, MatMul) else 1

    @property
    def channels(self) -> int:
        return prod(self.weights.shape[k] for k in self.outer)

    @property
    def along_channels(self) -> tuple[int, ...]:
        """Shape of a constant with an element for each channel, which broadcasts to the result."""
        rank = self.node.out_port().type.rank
        return tuple(self.channels if k == self.channel else 1 for k in range(rank))

    def read_data(self, source: OutPort) -> None:
        self.node.in_port(_DATA).connect(source)

    def read_weights(self, source: OutPort) -> None:
        self.node.in_port(_WEIGHTS).connect(source)


def products_of(graph: Graph) -> list[Product]:
    """Return the products in f32 with constant weights in floats, in order; those in bodies are left out.

    Layers that are quantised already have weights of integers, or weights that pass through a FakeQuantize.
    """
    products: list[Product] = []
    for node in graph.order():
        outer = _outer(node)
        if outer is None or node.out_port(0).type.dtype is not DType.F32:
            continue
        weights = constant_floats(node.source(_WEIGHTS))
        if weights is not None and weights.size:
            products.append(Product(node, weights, outer))
    return products


def left_out(graph: Graph) -> list[str]:
    """Return the names of the user's layers that keep products in f32: recurrent ones, loops and branches."""
    return [
        node.origin.layers[0] if node.origin.layers else node.name
        for node in graph.order()
        if isinstance(node.op, Recurrent) or any(map(products_of, node.regions.values()))
    ]


def _outer(node: Node) -> tuple[int, ...] | None:
    """Return the dimensions of a product's weights that are not summed."""
    if not isinstance(node.op, MatMul):
        return _OUTER.get(type(node.op))
    if node.source(_WEIGHTS).type.rank != 2 or node.op.transpose_a or node.source(_DATA).type.rank < 2:
        return None
    return (0,) if node.op.transpose_b else (1,)
