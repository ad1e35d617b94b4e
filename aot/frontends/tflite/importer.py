"""Operators become foreign operations of a graph: variables become values, sub-graphs regions.

    read = READ_VARIABLE(v); ASSIGN_VARIABLE(v, read + d)     ->     read = v0; v1 = ADD(v0, d)

A tensor that is marked `is_variable` is a variable, too, unless it is an input. Recurrent layers update those that they
read, their states: the foreign operation has one more output for each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.frontends.conversion.scopes import Handle, Scope, Value, foreign
from aot.frontends.conversion.table import decorator
from aot.frontends.tf.math.complex_numbers import COMPLEX
from aot.frontends.tflite.nets import ABSENT, Net, Nets, Operator
from aot.frontends.tflite.tensors import COMPUTED, Stored
from aot.ir.graph import Node, OutPort
from aot.ir.op import Foreign
from aot.ir.origin import Origin
from aot.ir.types import Array, dtype_of, numpy_dtype
from aot.ir.values.estimate import check_table
from aot.opset.control.infrastructure import Constant
from aot.runtime.abi import DType
from aot.runtime.errors import AotError, BudgetError, CorruptError, UnsupportedError

MAX_NODES = 1 << 20  # once sub-graphs are walked; the largest networks have a few 10 000
MAX_DEPTH = 32  # sub-graphs within sub-graphs
STATES = {
    "LSTM": (18, 19),
    "RNN": (4,),
    "SVDF": (4,),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": (18, 19),
    "UNIDIRECTIONAL_SEQUENCE_RNN": (4,),
}  # places of the inputs that an operation writes, too; a custom one may write all that are variables

Rule = Callable[["Importer", Operator, Net, Scope, list[Value], str], Sequence[Value]]
RULES: dict[str, Rule] = {}


rule = decorator(RULES)  # registers the walk's functions for operations


@dataclass(slots=True)
class Importer:
    """The walk over operators of a file."""

    nets: Nets
    calling: list[int] = field(default_factory=list[int])
    count: int = 0
    starting: bool = False  # assignments give variables their first values

    @property
    def file(self) -> str:
        return self.nets.file

    def run(self, number: int, args: Sequence[Value], scope: Scope, prefix: str) -> list[Value]:
        """Return the results of a sub-graph in the graph of `scope`. CorruptError if it contains itself."""
        net = self.nets[number]
        if number in self.calling or len(self.calling) >= MAX_DEPTH:
            raise CorruptError(
                f"{self.file}: sub-graphs can have at most {MAX_DEPTH} levels, none in itself, got {net.name!r}"
            )
        if len(args) != len(net.inputs):
            raise CorruptError(
                f"{self.file}: sub-graph {net.name!r} must have {len(net.inputs)} inputs, got {len(args)}"
            )
        self.calling.append(number)
        try:
            values: dict[int, Value] = dict(zip(net.inputs, args, strict=True))
            for operator in net.operators:
                self._operator(operator, net, values, scope, prefix)
            return [self.value(net, n, values, scope, prefix) for n in net.outputs]
        finally:
            self.calling.pop()

    def _operator(self, op: Operator, net: Net, values: dict[int, Value], scope: Scope, prefix: str) -> None:
        self.count += 1
        if self.count > MAX_NODES:
            raise BudgetError(
                f"{self.file}: there can be at most {MAX_NODES} operators once sub-graphs are walked, got more"
            )
        name = prefix + (net.tensors[op.outputs[0]].facts.name if op.outputs else "") or op.kind
        try:
            inputs = [None if n == ABSENT else self.value(net, n, values, scope, prefix) for n in op.inputs]
            run = RULES.get(op.kind)
            outputs = (
                self.node(op, net, scope, inputs, name) if run is None else run(self, op, net, scope, inputs, name)
            )
        except AotError as error:
            error.add_note(f"in TensorFlow Lite operator {name!r} ({op.kind}) of {self.file}")
            raise
        if len(outputs) < len(op.outputs):
            raise CorruptError(
                f"{self.file}: {op.kind}: {name!r} must have {len(outputs)} outputs, got {len(op.outputs)}"
            )
        for n, value in zip([*op.outputs, *_states(op, net)], outputs, strict=False):
            values[n] = value
            if net.tensors[n].facts.variable and n not in net.inputs:
                scope.set(self._state(net, n, scope), self.tensor(value, "a variable"))
            if isinstance(value, OutPort) and not prefix and n in op.outputs:
                value.add_tensor_names((net.tensors[n].facts.name,))

    def value(self, net: Net, n: int, values: dict[int, Value], scope: Scope, prefix: str) -> Value:
        """Return a tensor of a sub-graph at the place that is reached."""
        stored = net.tensors[n]
        if stored.facts.variable and n not in values:
            return self.read(self._state(net, n, scope), scope)
        if n not in values:
            if stored.raw is None and 0 not in stored.size:
                rule = "an operator before it, a buffer or the user gives it"
                raise CorruptError(f"{self.file}: tensor {stored.facts.name!r}: {rule}, got nothing")
            values[n] = self._constant(stored, scope, prefix + stored.facts.name)
        return values[n]

    def node(self, op: Operator, net: Net, scope: Scope, inputs: Sequence[Value], name: str) -> list[Value]:
        """Add a foreign node; it has further outputs for the variables that it updates."""
        ports = [self._port(value, op) for value in inputs]
        node = self.add(op, net, scope, ports, name, len(op.outputs) + len(_states(op, net)))
        return list(node.out_ports().values())

    def add(
        self,
        op: Operator,
        net: Net,
        scope: Scope,
        ports: Sequence[OutPort | None],
        name: str,
        outputs: int,
        **more: Any,
    ) -> Node:
        """Add a foreign node with the facts of its tensors: `taken` and `facts`."""
        taken = tuple(None if n == ABSENT else net.tensors[n].facts for n in op.inputs)
        facts = tuple(net.tensors[n].facts for n in op.outputs)
        within = {"intermediates": tuple(net.tensors[n].facts for n in op.intermediates)} if op.intermediates else {}
        attrs = {**op.attrs, "taken": taken, "given": facts, **within, **more}
        foreign_op = Foreign("tflite", op.kind, tuple(attrs.items()))
        return scope.graph.add(foreign_op, *ports, name=name, origin=Origin((name,), self.file), outputs=outputs)

    def _port(self, value: Value, op: Operator) -> OutPort | None:
        if value is None or isinstance(value, OutPort):
            return value
        name = value.name if isinstance(value, Handle) else value.key
        raise UnsupportedError(f"{op.kind}: inputs must be tensors, got the resource {name!r}")

    def tensor(self, value: Value, what: str) -> OutPort:
        """Return a value that must be a tensor."""
        if not isinstance(value, OutPort):
            raise UnsupportedError(f"{what}: a branch or a loop must take and give tensors, got another value")
        return value

    # ---- constants and variables

    def _constant(self, stored: Stored, scope: Scope, name: str) -> OutPort:
        try:
            if stored.facts.type in COMPLEX:
                parts = [self.constant(scope, a, f"{name}/part{k}") for k, a in enumerate(stored.complex_parts())]
                return foreign(scope, "Complex", *parts, name=name, file=self.file)
            data = np.zeros(stored.size, _numpy(stored)) if stored.raw is None else stored.data()
            return self.constant(scope, data, name)
        except UnsupportedError as error:
            op = Foreign("tflite", "Buffer", (("unsupported", str(error)),))
            return scope.graph.add(op, name=name, origin=Origin((name,), self.file)).out_port(0)

    def constant(self, scope: Scope, data: Array, name: str) -> OutPort:
        origin = Origin((name,), self.file)
        return scope.graph.add(Constant(dtype_of(data)), name=name, origin=origin, data=data).out_port(0)

    def _state(self, net: Net, n: int, scope: Scope) -> str:
        """Return the name of a variable tensor; its first value is zero."""
        stored = net.tensors[n]
        name = f"{net.name}/{stored.facts.name}#{n}" if net.name else f"{stored.facts.name}#{n}"
        top = outermost(scope)
        if name not in top.firsts:
            zero = stored.facts.quantization.zeros[0] if stored.facts.quantization is not None else 0
            check_table(name, *stored.size, itemsize=8)
            top.firsts[name] = self.constant(top, np.full(stored.size, zero, _numpy(stored)), name)
        return name

    def read(self, name: str, scope: Scope) -> OutPort:
        """Return the value of a variable at this place."""
        return scope.read(name, self.first)

    def first(self, name: str, scope: Scope) -> OutPort:
        """Return the value of a variable before the first inference."""
        if name not in scope.firsts:
            op = Foreign("tflite", "VAR_HANDLE", (("unsupported", "no CALL_ONCE gives it a first value"),))
            scope.firsts[name] = scope.graph.add(op, name=name, origin=Origin((name,), self.file)).out_port(0)
        return scope.firsts[name]


def _states(op: Operator, net: Net) -> list[int]:
    """Return the inputs of an operator that it updates."""
    if op.kind.startswith("CUSTOM."):
        return [n for n in op.inputs if n != ABSENT and net.tensors[n].facts.variable]
    return [op.inputs[i] for i in STATES.get(op.kind, ()) if i < len(op.inputs) and op.inputs[i] != ABSENT]


def outermost(scope: Scope) -> Scope:
    """Return the scope of the network."""
    while scope.outer is not None:
        scope = scope.outer
    return scope


def _numpy(stored: Stored) -> np.dtype[np.generic]:
    """Return the element type of data that is computed: a byte for numbers of fewer bits."""
    try:
        dtype = DType(stored.facts.type)
    except ValueError:
        raise UnsupportedError(f"element type {stored.facts.type} is not supported") from None
    return numpy_dtype(COMPUTED.get(dtype, dtype))
