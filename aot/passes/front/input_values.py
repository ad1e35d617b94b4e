"""Inputs with values fixed by the user: they become constants, and are no longer inputs of the compiled model.

k: i64[]     --value k=3     ->     k = Constant i64[] 3
"""

from __future__ import annotations

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.ir.build import Builder
from aot.ir.graph import Graph, Node
from aot.ir.types import Array, dim_text, numpy_dtype
from aot.opset.control.infrastructure import Parameter
from aot.options.texts import Nested
from aot.passes.front.input_shapes import parameter_named
from aot.runtime.errors import UsageError


@dataclass(frozen=True, slots=True)
class InputValues:
    """Pass for `--value`; `values`: inputs and their values, as nested lists. UsageError for values that do not fit."""

    values: tuple[tuple[str, Nested], ...] = ()
    name: str = "input_values"
    required: bool = True
    run_not_recursively: bool = True  # only the model's own inputs can be given

    def __call__(self, graph: Graph) -> bool:
        for name, value in self.values:
            node = parameter_named(graph, name, "--value")
            op = node.op
            assert isinstance(op, Parameter)
            fixed = Builder(graph, node.origin).const(_fitting(node, op, value), op.element_type, name=f"{name}.value")
            port = node.out_port(0)
            for consumer in port.get_destinations():
                consumer.connect(fixed)
            graph.remove(node)
        return bool(self.values)


def _fitting(node: Node, op: Parameter, value: Nested) -> Array:
    """Return the value in the input's type; a number also serves for a tensor of one element."""
    try:
        array = np.asarray(value)
        result = array.astype(numpy_dtype(op.element_type))
    except (ValueError, TypeError, OverflowError) as error:
        raise UsageError(f"--value: {node.name!r} is {op.element_type.value}, got {str(value)[:80]}") from error
    if array.dtype.kind == "f" and op.element_type.is_integer and not np.array_equal(result, array):
        raise UsageError(f"--value: {node.name!r} is {op.element_type.value}, got {str(value)[:80]}")
    if op.shape is None:
        return result
    static_shape = tuple(d for d in op.shape if isinstance(d, int))
    if result.ndim == 0 and static_shape == (1,) * len(op.shape):
        return result.reshape(static_shape)
    fits = result.ndim == len(op.shape)
    if not fits or any(isinstance(d, int) and d != n for d, n in zip(op.shape, result.shape, strict=True)):
        wanted_text = ",".join(map(dim_text, op.shape))
        raise UsageError(f"--value: {node.name!r} has shape [{wanted_text}], got {list(result.shape)}")
    return result
