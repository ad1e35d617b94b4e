"""Another layout for the model's interface: callers pass NHWC data to an NCHW model.

x: f32[1,3,224,224]          x: f32[1,224,224,3] - Transpose(0,3,1,2) - f32[1,3,224,224]
"""

from __future__ import annotations

from dataclasses import replace

from aot.codegen.dataclass import dataclass
from aot.ir.build import Builder
from aot.ir.graph import Graph, Node
from aot.ir.types import dim_text
from aot.opset.control.infrastructure import Parameter
from aot.passes.front.input_shapes import parameter_named
from aot.passes.permutation import Order, inverse, is_identity, transposed
from aot.runtime.errors import UsageError


@dataclass(frozen=True, slots=True)
class InterfaceLayout:
    """Pass for `--layout`: inputs by name, each with the layout that callers pass it in: `(("x", "NHWC"),)`.

    The model itself has the batch first, channels second, then the rest in the order in which the layout names it.
    UsageError for an input that does not exist or a layout that does not fit it.
    """

    layouts: tuple[tuple[str, str], ...]
    name: str = "interface_layout"
    required: bool = True
    run_not_recursively: bool = True  # bodies of sub-graphs have inputs of their own

    def __call__(self, graph: Graph) -> bool:
        changed = False
        for name, layout in self.layouts:
            node = parameter_named(graph, name, "--layout")
            changed = _change(graph, node, _order(node, layout.upper())) or changed
        return changed


def _order(node: Node, layout: str) -> Order:
    """Return the position in the caller's layout of each dimension of the model's tensor."""
    rank = node.out_port(0).type.rank
    if len(layout) != rank or len(set(layout)) != rank or not {"N", "C"} <= set(layout):
        shape = ",".join(map(dim_text, node.out_port(0).shape))
        rule = "one letter a dimension, N and C among them"
        raise UsageError(f"--layout: {layout} does not fit input {node.name!r} of shape [{shape}]: {rule}")
    own = "NC" + "".join(letter for letter in layout if letter not in "NC")
    return tuple(layout.index(letter) for letter in own)


def _change(graph: Graph, node: Node, order: Order) -> bool:
    op = node.op
    if is_identity(order) or not isinstance(op, Parameter):
        return False
    port = node.out_port(0)
    shape, consumers = port.shape, port.get_destinations()
    node.op = replace(op, shape=tuple(shape[i] for i in inverse(order)))
    restored = transposed(port, order, Builder(graph, node.origin))
    for consumer in consumers:
        consumer.connect(restored)
    return True
