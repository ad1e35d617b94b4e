"""IF, WHILE, CALL, CALL_ONCE and variables: foreign nodes with regions, as the conversions of control flow take them.

    IF(c, x)       ->    IF(c, ...): then_branch, else_branch
    WHILE(x)       ->    WHILE(cond(x), x, v0): body gives (cond(x'), x', v1)

All that a branch reads is captured: attribute `captures` says which parameter of which region is which input. A loop's
region has the body and then the condition, so that both are walked in one order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from aot.frontends.conversion.bodies import BRANCHES
from aot.frontends.conversion.scopes import (
    Handle,
    Scope,
    branch_inputs,
    carried_variables,
    loop_inputs,
    set_variables,
)
from aot.frontends.tflite.importer import Importer, Value, outermost, rule
from aot.frontends.tflite.nets import Net, Operator
from aot.ir.graph import Graph, OutPort
from aot.opset.control.infrastructure import Result
from aot.runtime.errors import CorruptError


def _number(op: Operator, name: str) -> int:
    if name not in op.attrs:
        raise CorruptError(f"{op.kind}: option {name} says which sub-graph it is, got none")
    return int(op.attrs[name])


def _results(self: Importer, scope: Scope, values: Sequence[Value], what: str) -> None:
    for value in values:
        port = self.tensor(value, what)
        scope.graph.add(Result(), port, name=port.node.name)


@rule("IF")
def if_(self: Importer, op: Operator, net: Net, scope: Scope, inputs: list[Value], name: str) -> Sequence[Value]:
    if not inputs:
        raise CorruptError(f"{op.kind}: {name!r} has a condition, got none")
    inners: list[Scope] = []
    results: list[list[Value]] = []
    for label, option in zip(BRANCHES, ("then_subgraph_index", "else_subgraph_index"), strict=True):
        inner = Scope(Graph(name=f"{name}/{label}", file=self.file), scope)
        args = [v if isinstance(v, Handle) else inner.enter("IF", self.tensor(v, op.kind)) for v in inputs[1:]]
        results.append(self.run(_number(op, option), args, inner, f"{name}/{label}/"))
        inners.append(inner)
    written = list(dict.fromkeys([*inners[0].written, *inners[1].written]))
    for inner, values in zip(inners, results, strict=True):
        _results(self, inner, [*values, *(self.read(v, inner) for v in written)], op.kind)
    sources, captures = branch_inputs(self.tensor(inputs[0], op.kind), BRANCHES, inners)
    count = len(results[0])
    if len(results[1]) != count:
        raise CorruptError(f"{op.kind}: both branches of {name!r} give as many values, got {[*map(len, results)]}")
    node = self.add(_free(op), net, scope, sources, name, count + len(written), captures=captures, inputs=1)
    node.regions = {label: inner.graph for label, inner in zip(BRANCHES, inners, strict=True)}
    set_variables(scope, written, node, count)
    return list(node.out_ports().values())


def _free(op: Operator) -> Operator:
    """Return the operator without the numbers of its tensors, which are others than its inputs now."""
    return replace(op, inputs=())


@rule("WHILE")
def while_(self: Importer, op: Operator, net: Net, scope: Scope, inputs: list[Value], name: str) -> Sequence[Value]:
    condition, body = _number(op, "cond_subgraph_index"), _number(op, "body_subgraph_index")
    first = _truth(self, condition, inputs, scope, name)
    inner = Scope(Graph(name=f"{name}/body", file=self.file), scope)
    given = [v if isinstance(v, Handle) else self.parameter(inner, f"carried{i}") for i, v in enumerate(inputs)]
    outs = self.run(body, given, inner, f"{name}/body/")
    if len(outs) != len(inputs) or any(isinstance(v, Handle) and v != o for v, o in zip(inputs, outs, strict=True)):
        raise CorruptError(f"{op.kind}: the body of {name!r} gives {len(inputs)} values like those that it takes")
    more = _truth(self, condition, outs, inner, f"{name}/next")
    written = carried_variables(inner, scope, self.first)
    values = [o for o in outs if not isinstance(o, Handle)]
    _results(self, inner, [more, *values, *(inner.values[v] for v in written)], op.kind)
    carried = [self.tensor(v, op.kind) for v in inputs if not isinstance(v, Handle)]
    carried += [self.read(v, scope) for v in written]
    sources, captures = loop_inputs([first, *carried], written, inner)
    facts = {"captures": captures, "inputs": 1 + len(carried)}
    node = self.add(_free(op), net, scope, sources, name, len(carried), **facts)
    node.regions = {"body": inner.graph}
    set_variables(scope, written, node, len(carried) - len(written))
    ports = iter(node.out_ports().values())
    return [v if isinstance(v, Handle) else next(ports) for v in inputs]


def _truth(self: Importer, condition: int, args: Sequence[Value], scope: Scope, name: str) -> OutPort:
    found = self.run(condition, args, scope, f"{name}/cond/")
    if len(found) != 1:
        raise CorruptError(f"WHILE: the condition of {name!r} gives one value, got {len(found)}")
    return self.tensor(found[0], "WHILE")


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
        raise CorruptError(f"{op.kind}: has {count} inputs, the first one a variable, got others")
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
