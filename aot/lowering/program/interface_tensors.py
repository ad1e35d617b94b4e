"""Inputs and outputs of a program: names, types and shapes, with default values."""

from __future__ import annotations

from aot.codegen.ir.access import volume
from aot.codegen.ir.loops import dense
from aot.codegen.ir.program import MemoryRegion, Tensor
from aot.ir.graph import Graph, Node
from aot.lowering.ir.steps import Value
from aot.lowering.ir.symbolic_sizes import Sizes
from aot.lowering.program.constant_places import Constants
from aot.runtime.errors import UsageError


def result_names(result: Node) -> tuple[str, ...]:
    """Return the names of an output of the network."""
    return tuple(dict.fromkeys((*result.out_port(0).names, *result.source(0).names)))


def result_name(result: Node) -> str:
    """Return the first of `result_names`; without any, the node's name."""
    return next(iter(result_names(result)), result.name)


def input_tensors(graph: Graph, constants: Constants) -> tuple[Tensor, ...]:
    """Return the inputs; their default values are put among the constants."""
    tensors: list[Tensor] = []
    for node in graph.parameters:
        port = node.out_port(0)
        default = _default(graph, node, constants)
        string = graph.strings.get(node.id, "")
        tensors.append(Tensor(node.name, port.names, port.type.dtype, port.shape, string=string, default=default))
    return tuple(tensors)


def output_tensors(graph: Graph, sizes: Sizes) -> tuple[Tensor, ...]:
    """Return the outputs, with the capacity of those whose sizes the program computes."""
    tensors: list[Tensor] = []
    for node in graph.results:
        port = node.source(0)
        most = sizes.most(sizes.of(volume(port.shape))) if any(map(sizes.is_late, port.shape)) else None
        name, names, string = result_name(node), result_names(node), graph.strings.get(node.id, "")
        tensors.append(Tensor(name, names, port.type.dtype, port.shape, most, string))
    return tuple(tensors)


def _default(graph: Graph, node: Node, constants: Constants) -> int | None:
    """Return the offset in the weights of an optional input's default value; None for other inputs."""
    data = graph.defaults.get(node.id)
    if data is None:
        return None
    type_ = node.out_port(0).type
    if type_.dims != data.shape:
        shape = list(data.shape)
        raise UsageError(f"feed: {node.name!r} keeps the shape of the constant, {shape}, got {type_}")
    buffer = dense(f"{node.name}.default", *data.shape, dtype=type_.dtype)
    return constants.add(Value(buffer, MemoryRegion.CONSTANT, data=data), None)
