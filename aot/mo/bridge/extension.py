"""An extension's own operation that no set has: its `infer` says types and, where it can, values."""

from __future__ import annotations

from typing import Any

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.ir.op import Op, late_symbol
from aot.ir.operand import Operand
from aot.ir.scope import raised_in
from aot.ir.types import Array, Dim, TensorType
from aot.mo.bridge.operation import WAYS
from aot.mo.bridge.values import dtype_from, shape_of
from aot.mo.graph.data import add_data_node
from aot.mo.graph.graph import Graph, Node
from aot.mo.ops.layer_attributes import element_type, layer_texts
from aot.mo.ops.op import MADE_IN
from aot.mo.partial_infer.by_definition import masked
from aot.mo.utils.arrays import dynamic_dimension, is_fully_defined
from aot.mo.utils.error import Error
from aot.runtime.errors import ModelError


@dataclass(frozen=True, eq=False)
class Extension(Op):
    """The attributes of a node, with its `infer`; it must be a constant, or be replaced, before it is compiled.

    Files may hold it: with its own type and the attributes that its class lists.
    """

    name: str = ""  # of the layer
    kind: str = ""  # attribute `op`
    outputs_count: int = 1
    attrs: Any = None
    layout: str = "NCHW"  # of the graph, as `framework`
    framework: str = "onnx"

    @property
    def user_type(self) -> str:
        return self.kind

    @property
    def ways(self) -> str:
        origin = f"; it was made in {self.attrs[MADE_IN]}" if MADE_IN in self.attrs else ""
        return f"{self._lack}{WAYS}{origin}"

    @property
    def own_layer(self) -> tuple[str, str, dict[str, str]] | None:
        if self._lack:
            return None
        return str(self.attrs["type"]), str(self.attrs.get("version") or "extension"), layer_texts(self._alone())

    @property
    def _lack(self) -> str:
        """Return the needs of a layer of a file that the node lacks; empty for a node with a type."""
        return "" if self.attrs.get("type") else f"type is {self.attrs.get('type')}: "

    def _alone(self) -> Node:
        """Return the node in a graph of its own, without inputs and outputs."""
        graph = Graph()
        graph.stage = "middle"
        graph.graph.update(layout=self.layout, fw=self.framework, ir_version=11)
        graph.add_node(self.name, **{**self.attrs, "_in_ports": {}, "_out_ports": {}})
        return Node(graph, self.name)

    def infer(self, *operands: Operand | None) -> tuple[TensorType, ...]:
        return tuple(operand.type for operand in self._inferred(operands))

    def fold(self, *operands: Operand | None) -> tuple[Array, ...] | None:
        """Return the values that `infer` computes; it may know them from shapes alone."""
        values = [found.value for found in self._inferred(operands)]
        known = [v for v in values if v is not None]
        return tuple(known) if len(known) == len(values) else None

    def _inferred(self, operands: tuple[Operand | None, ...]) -> list[Operand]:
        node = self.shown(*operands)
        return [self._output(node, idx, operands) for idx in range(self.outputs_count)]

    def shown(self, *operands: Operand | None) -> Node:
        """Return the node in a graph of its own, with data nodes, as its `infer` has left it."""
        node = self._alone()
        for idx, operand in enumerate(operands):
            if operand is not None:
                _add_input(node, idx, operand)
        for idx in range(self.outputs_count):
            node.add_output_port(idx, skip_if_exist=True)
            node.out_port(idx).create_data_if_necessary()
        try:
            node["infer"](node)
            if node.has_valid("type_infer"):
                node["type_infer"](node)
        except Exception as error:
            where = f" ({location})" if (location := raised_in(error)) else ""
            text = f"{self.kind} ({self.name}): its infer failed: {type(error).__name__}: {error}{where}"
            raise ModelError(text) from error
        return node

    def _output(self, node: Node, idx: int, operands: tuple[Operand | None, ...]) -> Operand:
        data = node.out_node(idx)
        shape = data.soft_get("shape", None)
        if shape is None:
            raise Error("{} ({}): its infer has set no shape of output {}", self.kind, self.name, idx)
        dims: tuple[Dim, ...] = tuple(
            late_symbol(self, f"o{idx}d{i}", None, *operands) if d is dynamic_dimension else int(d)
            for i, d in enumerate(shape)
        )
        value = data.soft_get("value", None)
        if value is not None and is_fully_defined(value):
            array = np.asarray(value)
            return Operand(TensorType(element_type(array.dtype), dims), array)
        port = node.out_port(idx)
        known = port.get_data_type() if port.is_data_type_defined() else None
        first = next((o.dtype for o in operands if o is not None), None)
        dtype = first if known is None and first is not None else dtype_from(known)
        return Operand(TensorType(dtype, dims))


def _add_input(node: Node, idx: int, operand: Operand) -> None:
    attrs: dict[str, Any] = {"shape": shape_of(operand.type.dims)}
    if operand.value is not None:
        attrs["value"] = masked(operand.value, operand.dtype)
    data = add_data_node(node.graph, f"{node.id}/input_{idx}", attrs)
    node.add_input_port(idx, skip_if_exist=True)
    node.graph.add_edge(data, node.id, **{"in": idx})
