"""IF, WHILE, CALL, CALL_ONCE and variables: foreign nodes with regions, as the conversions of control flow take them.

    IF(c, x)       ->    IF(c, ...): then_branch, else_branch
    WHILE(x)       ->    WHILE(cond(x), x, v0): body gives (cond(x'), x', v1)

All that a branch reads is captured: attribute `captures` says which parameter of which region is which input. A loop's
region has the body and then the condition, so that both are walked in one order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from aot.frontends.tf.handles import Handle, Scope
from aot.frontends.tflite.importer import Importer, Value, outermost, rule
from aot.frontends.tflite.nets import Net, Operator
from aot.ir.graph import Graph, OutPort
from aot.opset.control.infrastructure import Result
from runtime.errors import CorruptError

BRANCHES = ("then_branch", "else_branch")


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
    sources, captures = [self.tensor(inputs[0], op.kind)], list[tuple[str, int, int]]()
    inners: list[Scope] = []
    results: list[list[Value]] = []
    for label, option in zip(BRANCHES, ("then_subgraph_index", "else_subgraph_index"), strict=True):
        inner = Scope(Graph(name=f"{name}/{label}", file=self.file), scope)
        args = [v if isinstance(v, Handle) else inner.enter("IF", self.tensor(v, op.kind)) for v in inputs[1:]]
        results.append(self.run(_number(op, option), args, inner, f"{name}/{label}/"))
        inners.append(inner)
    written = list(dict.fromkeys([*inners[0].written, *inners[1].written]))
    regions: dict[str, Graph] = {}
    for label, inner, values in zip(BRANCHES, inners, results, strict=True):
        _results(self, inner, [*values, *(self.read(v, inner) for v in written)], op.kind)
        for position, port in inner.captured:
            captures.append((label, position, len(sources)))
            sources.append(port)
        regions[label] = inner.graph
    count = len(results[0])
    if len(results[1]) != count:
        raise CorruptError(f"{op.kind}: both branches of {name!r} give as many values, got {[*map(len, results)]}")
    node = self.add(_free(op), net, scope, sources, name, count + len(written), captures=tuple(captures), inputs=1)
    node.regions = regions
    for i, variable in enumerate(written):
        scope.set(variable, node.out_port(count + i))
    return list(node.out_ports().values())


def _free(op: Operator) -> Operator:
    """The operator without the numbers of its tensors, which are others than its inputs now."""
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
    for variable in inner.written:
        if variable not in inner.entered:
            inner.entered[variable] = len(inner.graph.parameters)
            inner.enter(variable, self.read(variable, scope))
    written = sorted(inner.written, key=inner.entered.__getitem__)
    values = [o for o in outs if not isinstance(o, Handle)]
    _results(self, inner, [more, *values, *(inner.values[v] for v in written)], op.kind)
    carried = [self.tensor(v, op.kind) for v in inputs if not isinstance(v, Handle)]
    sources = [first, *carried, *(self.read(v, scope) for v in written)]
    count, captures = len(sources), list[tuple[str, int, int]]()
    places = {inner.entered[v] for v in written}
    for position, port in inner.captured:
        if position not in places:
            captures.append(("body", position, len(sources)))
            sources.append(port)
    node = self.add(_free(op), net, scope, sources, name, count - 1, captures=tuple(captures), inputs=count)
    node.regions = {"body": inner.graph}
    for i, variable in enumerate(written):
        scope.set(variable, node.out_port(len(carried) + i))
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
