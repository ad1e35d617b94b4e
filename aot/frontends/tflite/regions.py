"""IF, WHILE, CALL, CALL_ONCE and variables: foreign nodes with regions, as the conversions of control flow take them.

`aot.frontends.conversion.regions` makes the regions, from what the walk over a function gives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from aot.frontends.conversion.regions import Control, Fill
from aot.frontends.conversion.scopes import Handle, Scope
from aot.frontends.tflite.importer import Importer, Value, outermost, rule
from aot.frontends.tflite.nets import Net, Operator
from aot.ir.graph import Node, OutPort
from aot.runtime.errors import CorruptError


def _number(op: Operator, name: str) -> int:
    if name not in op.attrs:
        raise CorruptError(f"{op.kind}: option {name} must say which sub-graph it is, got none")
    return int(op.attrs[name])


def _control(self: Importer, op: Operator, net: Net, scope: Scope, name: str) -> Control:
    free = replace(op, inputs=())  # the inputs are others than its tensors now

    def add(scope: Scope, sources: Sequence[OutPort], outputs: int, **facts: Any) -> Node:
        return self.add(free, net, scope, sources, name, outputs, **facts)

    def tensor(value: Value, scope: Scope, what: str) -> OutPort:
        del scope
        return self.tensor(value, what)

    return Control(name, op.kind, op.kind, self.file, scope, self.first, tensor, add)


def _filled(self: Importer, op: Operator, option: str) -> Fill:
    """Return the walk of the sub-graph of an option in a region."""
    number = _number(op, option)
    return lambda scope, arguments, prefix: self.run(number, arguments, scope, prefix)


@rule("IF")
def if_(self: Importer, op: Operator, net: Net, scope: Scope, inputs: list[Value], name: str) -> Sequence[Value]:
    if not inputs:
        raise CorruptError(f"{op.kind}: {name!r} must have a condition, got none")
    fills = [_filled(self, op, f"{branch}_subgraph_index") for branch in ("then", "else")]
    return _control(self, op, net, scope, name).branches(self.tensor(inputs[0], op.kind), fills, inputs[1:])


@rule("WHILE")
def while_(self: Importer, op: Operator, net: Net, scope: Scope, inputs: list[Value], name: str) -> Sequence[Value]:
    condition, body = (_filled(self, op, f"{part}_subgraph_index") for part in ("cond", "body"))
    return _control(self, op, net, scope, name).loop(condition, body, inputs)


@rule("CALL")
def call(self: Importer, op: Operator, net: Net, scope: Scope, inputs: list[Value], name: str) -> Sequence[Value]:
    return self.run(_number(op, "subgraph"), inputs, scope, f"{name}/")


@rule("STABLEHLO_COMPOSITE")
def composite(self: Importer, op: Operator, net: Net, scope: Scope, inputs: list[Value], name: str) -> Sequence[Value]:
    """The operations that it stands for."""
    return self.run(_number(op, "decomposition_subgraph_index"), inputs, scope, f"{name}/")


@rule("CALL_ONCE")
def call_once(self: Importer, op: Operator, net: Net, scope: Scope, inputs: list[Value], name: str) -> Sequence[Value]:
    """The first values of variables."""
    if scope.outer is not None:
        return []  # before the first inference, wherever it stands
    outer, self.starting = self.starting, True
    try:
        self.run(_number(op, "init_subgraph_index"), inputs, scope, "once/")
    finally:
        self.starting = outer
    return []


@rule("VAR_HANDLE")
def var_handle(self: Importer, op: Operator, net: Net, scope: Scope, inputs: list[Value], name: str) -> Sequence[Value]:
    container, shared = (str(op.attrs.get(k, "")) for k in ("container", "shared_name"))
    return [Handle(f"{container}/{shared}" if container else shared or name)]


def _handle(op: Operator, inputs: Sequence[Value], count: int) -> Handle:
    if len(inputs) != count or not isinstance(inputs[0], Handle):
        raise CorruptError(f"{op.kind}: must have {count} inputs, the first one a variable, got others")
    return inputs[0]


@rule("READ_VARIABLE")
def read(self: Importer, op: Operator, net: Net, scope: Scope, inputs: list[Value], name: str) -> Sequence[Value]:
    return [self.read(_handle(op, inputs, 1).name, scope)]


@rule("ASSIGN_VARIABLE")
def assign(self: Importer, op: Operator, net: Net, scope: Scope, inputs: list[Value], name: str) -> Sequence[Value]:
    variable, value = _handle(op, inputs, 2).name, self.tensor(inputs[1], op.kind)
    if self.starting:
        outermost(scope).firsts[variable] = value
    else:
        scope.set(variable, value)
    return []
