"""Operations that are functions of a builder: the nodes that the function makes are the operation's meaning.

    @operation
    def scaled_tanh(build, x, *, scale: float = 1.0):
        \"\"\"scale * tanh(x)\"\"\"
        return build.Multiply(build.Tanh(x), scale)

Types, values and the compiled form follow from the operations that it is made of.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from typing import Any, ClassVar, cast, get_type_hints

from aot.codegen.dataclass import dataclass
from aot.ir.build import Builder
from aot.ir.graph import Graph, OutPort
from aot.ir.interpret import interpret
from aot.ir.op import DecomposedOp
from aot.ir.operand import Operand
from aot.ir.registry import op
from aot.ir.types import Array, TensorType, dtype_of
from aot.opset.control.infrastructure import Parameter, Result
from aot.runtime.errors import UnsupportedError, UsageError

KINDS = (bool, int, float, str, tuple)  # types of attributes


@dataclass(frozen=True)
class ComposedOp(DecomposedOp):
    """An operation that `written(build, *ports, **attributes)` makes of others."""

    written: ClassVar[Callable[..., Any]]

    def infer(self, *operands: Operand | None) -> tuple[TensorType, ...]:
        graph = self._graph(operands)
        return tuple(result.source(0).type for result in graph.results)

    def reference(self, *arrays: Array | None) -> tuple[Array, ...]:
        operands = [None if a is None else Operand(TensorType(dtype_of(a), a.shape), a) for a in arrays]
        return tuple(interpret(self._graph(operands), [a for a in arrays if a is not None]))

    def decompose(self, build: Builder, *ports: OutPort | None) -> Any:
        attributes = {f.name: getattr(self, f.name) for f in fields(self)}
        return type(self).written(build, *ports, **attributes)

    def _graph(self, operands: Any) -> Graph:
        """Return a graph of the operation alone. UnsupportedError for an input of unknown rank."""
        graph = Graph()
        build = Builder(graph)
        ports = [None if one is None else _input(build, one, self.type) for one in operands]
        outputs = self.decompose(build, *ports)
        for port in cast("tuple[object, ...]", outputs) if isinstance(outputs, tuple) else (outputs,):
            if not isinstance(port, OutPort):
                raise UsageError(f"{self.type}: the function must return tensors, got {port!r}")
            build(Result(), port)
        return graph


def _input(build: Builder, one: Operand, type: str) -> OutPort:
    if one.type.dims is None:
        raise UnsupportedError(f"{type}: the rank of every input must be known, got {one.type}")
    port = build(Parameter(one.type.dtype, one.type.dims))
    if one.value is not None and one.value.dtype != object:
        return build.const(one.value, one.type.dtype)
    return port


def operation(function: Callable[..., Any]) -> type[ComposedOp]:
    """Make an operation, of the set `extension`, of a function `(build, *tensors, *, attribute: type = default)`.

    Its name is the function's, in capitals: `scaled_tanh` is ScaledTanh. UsageError for another form of function.
    """
    parameters = list(inspect.signature(function).parameters.values())
    inputs = [p for p in parameters[1:] if p.kind is p.POSITIONAL_OR_KEYWORD]
    named = [p for p in parameters if p.kind is p.KEYWORD_ONLY]
    if not inputs or len(inputs) + len(named) != len(parameters) - 1:
        rule = "a function (build, tensor, .., *, attribute: type = default, ..)"
        raise UsageError(f"operation: {rule}, got {function.__name__}{inspect.signature(function)}")
    required = sum(p.default is p.empty for p in inputs)
    namespace: dict[str, Any] = {"__module__": function.__module__, "__doc__": function.__doc__}
    namespace |= {"written": staticmethod(function), "arity": (required, len(inputs)), **_attributes(function, named)}
    name = "".join(part[:1].upper() + part[1:] for part in function.__name__.split("_"))
    return op("extension")(type(name, (ComposedOp,), namespace))


def _attributes(function: Callable[..., Any], named: list[inspect.Parameter]) -> dict[str, Any]:
    """Return the attributes of a class for the keywords of its function: their defaults and their types."""
    hints, types, defaults = get_type_hints(function), dict[str, Any](), dict[str, Any]()
    for one in named:
        kind: Any = hints.get(one.name)
        default: Any = float(one.default) if kind is float and isinstance(one.default, int) else one.default
        if kind not in KINDS or not isinstance(default, kind):
            rule = f"attribute {one.name} has a type of {', '.join(k.__name__ for k in KINDS)}, and a default of it"
            raise UsageError(f"operation: {function.__name__}: {rule}, got {one}")
        types[one.name], defaults[one.name] = tuple[int, ...] if kind is tuple else kind, default
    return {**defaults, "__annotations__": types}
