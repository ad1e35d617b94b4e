"""A part of the network: the nodes between tensors that the user names.

x -> conv -> relu -> pool -> y     --cut relu:pool     ->     relu (an input) -> pool (an output)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.loops import Var
from aot.ir.copies import copy_graph
from aot.ir.graph import Graph, Node, OutPort
from aot.ir.topological import producers_first
from aot.ir.types import Dim, TensorType
from aot.opset.control.infrastructure import Parameter, Result
from aot.runtime.errors import UsageError


@dataclass(frozen=True, slots=True)
class Cut:
    """Pass for `--cut`. `inputs`, `outputs`: tensors or layers; without inputs, or outputs, the network's stay.

    `convert`: passes that leave the dialects of front ends, for the types of inputs. Nodes that no output needs are
    removed before it is converted, so that it need not be supported. UsageError for names that the model does not have,
    and for inputs that no output needs.
    """

    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    convert: tuple[Callable[[Graph], bool], ...] = ()
    name: str = "cut"
    required: bool = True
    run_not_recursively: bool = True  # only tensors of the network itself can be named

    def __call__(self, graph: Graph) -> bool:
        if not self.inputs and not self.outputs:
            return False
        types = self._types(graph)
        tensors = tensors_by_name(graph)
        if self.outputs:
            _set_outputs(graph, self.outputs)
        pairs = zip(self.inputs, types, strict=True)
        nodes = {name: _input(graph, tensors[name], name, type) for name, type in pairs}
        _remove_unneeded(graph)
        for name, node in nodes.items():
            if node.id not in graph.nodes:
                raise UsageError(f"--cut: inputs must lead to outputs, got {name!r}")
            if name not in {n.name for n in graph.nodes.values()}:
                node.name = name  # the layer of that name is gone
        first = list(nodes.values())
        graph.parameters[:] = [*first, *(n for n in graph.parameters if n not in first)]
        return True

    def _types(self, graph: Graph) -> list[TensorType]:
        """Return the types of the new inputs, inferred from their producers."""
        _check_names((*self.inputs, *self.outputs), tensors_by_name(graph))
        if not self.inputs:
            return []
        above = copy_graph(graph)
        _set_outputs(above, self.inputs)
        _remove_unneeded(above)
        for run in self.convert:
            run(above)
        return [node.source(0).type for node in above.results]


def _check_names(names: Iterable[str], tensors: Mapping[str, OutPort]) -> None:
    for name in names:
        if name not in tensors:
            near = ", ".join(get_close_matches(name, tensors, 3)) or "none is called so, or nearly so"
            raise UsageError(f"--cut: must be a tensor or layer of the model, for example {near}, got {name!r}")


def tensors_by_name(graph: Graph) -> dict[str, OutPort]:
    """Return outputs of nodes by the names of tensors, and by names of layers that no tensor has."""
    nodes = [node for node in graph.order() if not isinstance(node.op, Result)]
    ports = {name: port for node in nodes for port in node.out_ports().values() for name in port.names}
    for node in graph.results:
        ports |= {name: node.source(0) for name in (*node.out_port(0).names, node.name)}
    return {node.name: node.out_port(0) for node in nodes if node.out_ports()} | ports


def _set_outputs(graph: Graph, names: Iterable[str]) -> None:
    """Make these tensors the outputs of the network, in this order."""
    tensors = tensors_by_name(graph)
    for node in list(graph.results):
        graph.remove(node)
    for name in names:
        graph.add(Result(), tensors[name], name=name, origin=tensors[name].node.origin).out_port(0).names = (name,)


def _input(graph: Graph, port: OutPort, name: str, type: TensorType) -> Node:
    """Add the input that takes the place of a tensor."""
    if isinstance(port.node.op, Parameter):
        return port.node
    dims = None if type.dims is None else tuple(_dim(d, name, k, graph) for k, d in enumerate(type.dims))
    node = graph.add(Parameter(type.dtype, dims), name=name, origin=port.node.origin)
    port.names = tuple(n for n in port.names if n != name)
    node.out_port(0).names = (name,)
    for consumer in port.get_destinations():
        consumer.connect(node.out_port(0))
    return node


def _dim(dim: Dim, name: str, axis: int, graph: Graph) -> Dim:
    """Return a size of a new input: a number, a symbol of the network's inputs, or a symbol of its own."""
    known = {d for n in graph.parameters if isinstance(n.op, Parameter) for d in n.op.shape or () if isinstance(d, Var)}
    if isinstance(dim, int) or dim in known:
        return dim
    return Var(f"{re.sub(r'^(?=[0-9])|[^A-Za-z0-9_.]', '_', name)}.d{axis}")


def _remove_unneeded(graph: Graph) -> None:
    """Remove nodes that neither an output needs, nor a variable that an output needs."""
    needed = _needed(graph, graph.results)
    variables = {_variable(node) for node in graph.nodes.values() if node.id in needed} - {""}
    needed |= _needed(graph, [node for node in graph.sinks if _variable(node) in variables])
    for node in reversed(graph.order()):
        if node.id not in needed:
            for port in node.out_ports().values():
                port.disconnect()
            graph.remove(node)


def _needed(graph: Graph, roots: Iterable[Node]) -> set[int]:
    def above(node: Node) -> list[Node]:
        return [port.node for port in node.sources() if port is not None]

    return {node.id for node in producers_first(roots, above, lambda n: n.name)}


def _variable(node: Node) -> str:
    return str(getattr(node.op, "variable_id", ""))
