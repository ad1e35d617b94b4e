"""Constants that the user may feed: they become inputs, with the constant as the default.

w = Constant f32[64,64]     --feed w     ->     w: f32[64,64], optional
"""

from __future__ import annotations

from aot.codegen.dataclass import dataclass
from aot.ir.graph import Graph, Node
from aot.opset.control.infrastructure import Constant, Parameter
from aot.runtime.errors import UsageError


@dataclass(frozen=True, slots=True)
class InputFeeds:
    """Pass for `--feed`: `names` of constants (ONNX initializers, Const layers of IR); UsageError if one is unknown."""

    names: tuple[str, ...] = ()
    name: str = "input_feeds"
    required: bool = True
    run_not_recursively: bool = True  # only constants of the model's own graph can be fed

    def __call__(self, graph: Graph) -> bool:
        for name in dict.fromkeys(self.names):
            node = _constant_named(graph, name)
            op, data, port = node.op, node.data, node.out_port(0)
            assert isinstance(op, Constant) and data is not None
            new_node = graph.add(Parameter(op.element_type, data.shape), origin=node.origin)
            graph.defaults[new_node.id] = data
            new_node.out_port(0).names = (name,)
            for consumer in port.get_destinations():
                consumer.connect(new_node.out_port(0))
            graph.remove(node)
            new_node.name = node.name
        return bool(self.names)


def _constant_named(graph: Graph, name: str) -> Node:
    constants = [n for n in graph.nodes.values() if isinstance(n.op, Constant) and n.constant_data is not None]
    for node in constants:
        if node.name == name or name in node.out_port(0).names:
            return node
    names = ", ".join(sorted(n.name for n in constants)[:8]) or "none"
    raise UsageError(f"--feed: must be a constant of the model, such as {names}, got {name!r}")


__all__ = ["InputFeeds"]
