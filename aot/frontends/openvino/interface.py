"""Inputs and outputs of version 10 files: fewer element types, and layers' names are names of tensors."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from aot.ir.build import Builder
from aot.ir.graph import Graph, Node
from aot.runtime.abi import DType
from aot.runtime.errors import UnsupportedError

OUTPUT_TYPES = {
    **dict.fromkeys((DType.F64, DType.F16, DType.BF16), DType.F32),
    **dict.fromkeys((DType.I16, DType.I8, DType.U16, DType.U8, DType.BOOL), DType.F32),
    **dict.fromkeys((DType.I64, DType.U64, DType.U32), DType.I32),
}


def apply_version_10(graph: Graph) -> None:
    """Convert f16 inputs to f32, and outputs of other types than f32 and i32 to one of these."""
    for node in list(graph.results):  # before inputs change, since outputs have the names of their producers
        _convert_output(graph, node)
    for node in list(graph.parameters):
        node.out_port(0).add_tensor_names((node.name,))
        _widen_input(graph, node)


def _widen_input(graph: Graph, node: Node) -> None:
    op: Any = node.op
    if op.element_type is not DType.F16:
        return
    consumers = node.out_port(0).get_destinations()
    node.op = replace(op, element_type=DType.F32)
    build = Builder(graph, node.origin)
    narrow = build.Convert(node.out_port(0), destination_type=DType.F16, name=f"{node.name}/convert")
    for port in consumers:
        port.connect(narrow)


def _convert_output(graph: Graph, node: Node) -> None:
    source = node.source(0)
    above = source.node
    name = above.name if len(above.out_ports()) == 1 else f"{above.name}.{source.idx}"
    source.add_tensor_names((name,))
    node.out_port(0).add_tensor_names((name,))
    try:
        output_type = OUTPUT_TYPES.get(source.type.dtype)
    except UnsupportedError:
        return  # a type below cannot be inferred: compiling reports it, reading must not fail
    if output_type is not None:
        converted = Builder(graph, node.origin).Convert(
            source, destination_type=output_type, name=f"{node.name}/convert"
        )
        node.in_port(0).connect(converted)
