"""Builder: adds nodes to a graph in the language of the opset: `build.Add(x, y)`, `build.const([1, 2], DType.I64)`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from aot.ir.graph import Graph, Node, Origin, OutPort
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
        like = next((i for i in inputs if isinstance(i, OutPort)), None)
        ports = [i if i is None or isinstance(i, OutPort) else self._number(i, like) for i in inputs]
        return self.graph.add(op, *ports, name=name, origin=self.origin, outputs=outputs)

    def const(self, value: Any, dtype: DType, name: str = "") -> OutPort:
        """Return a constant; arrays that may change are copied, arrays of mapped files are not."""
        data = value if isinstance(value, Deferred) else np.asarray(value)
        if not isinstance(data, Deferred):
            changes = data.flags.writeable or not data.flags.c_contiguous
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
