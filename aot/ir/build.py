"""Builder: adds nodes to a graph in the language of the opset: `build.Add(x, y)`, `build.const([1, 2], DType.I64)`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from aot.ir.graph import Graph, Node, Origin, OutPort
from aot.ir.inference import infer_outputs
from aot.ir.op import Op
from aot.ir.registry import REGISTRY, operation
from aot.ir.types import numpy_dtype
from aot.ir.values.deferred import Deferred
from aot.runtime.abi import DType
from aot.runtime.errors import InternalError


class Builder:
    """Every node it adds has the same origin. Plain numbers and arrays become constants of the first port's type."""

    def __init__(self, graph: Graph, origin: Origin | None = None) -> None:
        self.graph, self.origin = graph, origin

    def __call__(self, op: Op, *inputs: OutPort | Any | None, outputs: int = 1, name: str = "") -> OutPort:
        """Add a node and return its output 0."""
        return self.node(op, *inputs, outputs=outputs, name=name).out_port(0)

    def node(self, op: Op, *inputs: OutPort | Any | None, outputs: int = 1, name: str = "") -> Node:
        return self.graph.add(op, *self.ports(inputs), name=name, origin=self.origin, outputs=outputs)

    def ports(self, inputs: Sequence[OutPort | Any | None]) -> Sequence[OutPort | None]:
        """Return the inputs with constants for numbers."""
        like = next((i for i in inputs if isinstance(i, OutPort)), None)
        return [i if i is None or isinstance(i, OutPort) else self._number(i, like) for i in inputs]

    def const(self, value: Any, dtype: DType, name: str = "", is_new: bool = False) -> OutPort:
        """Return a constant; arrays that may change are copied, those of mapped files or that are new are not."""
        data = value if isinstance(value, Deferred) else np.asarray(value)
        if not isinstance(data, Deferred):
            changes = (data.flags.writeable and not is_new) or not data.flags.c_contiguous
            data = data.astype(numpy_dtype(dtype), copy=changes)
        op = REGISTRY["Constant"](element_type=dtype)  # type: ignore[call-arg]
        return self.graph.add(op, name=name, origin=self.origin or Origin(), data=data).out_port(0)

    def _number(self, value: Any, like: OutPort | None) -> OutPort:
        if like is None:
            raise InternalError("a number needs a port beside it, which gives its type")
        return self.const(value, like.type.dtype)

    def __getattr__(self, type: str) -> Callable[..., OutPort]:
        """Return a function that adds nodes of a type: `build.Relu(x)`, `build.MatMul(a, b, transpose_b=True)`."""
        cls = operation(type)
        if cls is None:
            raise AttributeError(f"no operation {type!r}")

        def add(*inputs: OutPort | Any | None, outputs: int = 1, name: str = "", **attributes: Any) -> OutPort:
            return self(cls(**attributes), *inputs, outputs=outputs, name=name)

        return add


class FoldingBuilder(Builder):
    """Adds constants in place of operations on constants whose values inference computes."""

    def node(self, op: Op, *inputs: OutPort | Any | None, outputs: int = 1, name: str = "") -> Node:
        ports = self.ports(inputs)
        operands = [p.node.operands()[p.idx] for p in ports if p is not None and p.node.constant_data is not None]
        if ports and len(operands) == len(ports):
            results = infer_outputs(op, operands, {})
            value, dtype = results[0].value, results[0].dtype
            numbers = value is not None and value.dtype != object and value.dtype == numpy_dtype(dtype)
            if len(results) == outputs == 1 and value is not None and numbers:
                return self.const(np.ascontiguousarray(value).reshape(value.shape), dtype, name, is_new=True).node
        return super().node(op, *ports, outputs=outputs, name=name)
