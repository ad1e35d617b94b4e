"""If, Case and While of functions: foreign nodes with regions, as the conversions of control flow take them.

    If(c, x, v)       ->    If(c, ...): then_branch, else_branch
    While(x, v)       ->    While(cond(x), x, v0): body gives (cond(x'), x', v1)

All that a branch reads is captured: attribute `captures` says which parameter of which region is which input. A loop's
region has the body and then the condition, so that both are walked in one order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from aot.frontends.conversion.bodies import BRANCHES
from aot.frontends.conversion.scopes import (
    Handle,
    Scope,
    Value,
    branch_inputs,
    carried_variables,
    foreign,
    loop_inputs,
    set_variables,
)
from aot.frontends.tf.graph.importer import Importer, rule
from aot.frontends.tf.graph.nets import Item, Net, function_net
from aot.ir.graph import Graph, Node, OutPort
from aot.ir.op import Foreign
from aot.ir.origin import Origin
from aot.opset.control.infrastructure import Result
from aot.runtime.errors import CorruptError, UnsupportedError

_BOOLEAN = 10  # DT_BOOL
Fill = Callable[[Scope, list[Value]], list[Value]]  # from the values of parameters to results


def _net(self: Importer, item: Item, attribute: str) -> Net:
    return item.nets[attribute] if attribute in item.nets else self.net(item.function(attribute), item, attribute)


def _needs_inputs(self: Importer, item: Item, inputs: Sequence[Value]) -> None:
    if not inputs:
        raise CorruptError(f"{self.file}: {item.kind}: {item.name!r} has inputs, got none")


@rule("If", "StatelessIf")
def if_(self: Importer, item: Item, scope: Scope, inputs: list[Value], name: str) -> list[Value]:
    _needs_inputs(self, item, inputs)
    condition = self.given(inputs[0], scope, item.kind)
    if item.type("Tcond") not in (0, _BOOLEAN):
        condition = foreign(scope, "ToBool", condition, name=f"{name}/condition", file=self.file)
    fills = [_filled(self, _net(self, item, label), f"{name}/{label}/") for label in BRANCHES]
    return _forked(self, condition, fills, inputs[1:], scope, name)


@rule("Case", "StatelessCase")
def case(self: Importer, item: Item, scope: Scope, inputs: list[Value], name: str) -> list[Value]:
    """Ifs within Ifs; a number that is no branch's takes the last one."""
    _needs_inputs(self, item, inputs)
    functions = item.attrs["branches"].list.func if "branches" in item.attrs else ()
    fills: list[Fill] = []
    for k, function in enumerate(functions):
        if function.name not in self.functions:
            rule = "and there is none of this name"
            raise CorruptError(f"{self.file}: {item.name!r} calls function {function.name!r}, {rule}")
        net = function_net(self.functions[function.name], function.attr, self.file)
        fills.append(_filled(self, net, f"{name}/branch{k}/"))
    if not fills:
        raise CorruptError(f"{self.file}: Case: {name!r} has branches, got none")
    return _chosen(self, fills, 0, inputs, scope, name)


def _chosen(self: Importer, fills: list[Fill], k: int, inputs: list[Value], scope: Scope, name: str) -> list[Value]:
    """Branch k where input 0 is k; else one of those behind it."""
    index, *args = inputs
    if k == len(fills) - 1:
        return fills[k](scope, args)
    number = self.constant(scope, np.array(k, np.int32), f"{name}/number{k}")
    index = self.given(index, scope, "Case")
    condition = foreign(scope, "Equal", index, number, name=f"{name}/is{k}", file=self.file)

    def first(inner: Scope, given: list[Value]) -> list[Value]:
        return fills[k](inner, given[1:])

    def others(inner: Scope, given: list[Value]) -> list[Value]:
        return _chosen(self, fills, k + 1, given, inner, name)

    return _forked(self, condition, [first, others], inputs, scope, f"{name}/case{k}")


def _filled(self: Importer, net: Net, prefix: str) -> Fill:
    return lambda scope, given: self.run_function(net, given, scope, prefix)


def _inside(self: Importer, scope: Scope, args: Sequence[Value], name: str, what: str) -> tuple[Scope, list[Value]]:
    """Return the scope of a region, and its arguments in it: parameters, or handles."""
    inner = Scope(Graph(name=name, file=self.file), scope)
    return inner, [v if isinstance(v, Handle) else inner.enter(what, self.given(v, scope, what)) for v in args]


def _forked(
    self: Importer, condition: OutPort, fills: Sequence[Fill], args: Sequence[Value], scope: Scope, name: str
) -> list[Value]:
    """Return the results of an If, and in `scope` the values of variables that a branch sets."""
    inners: list[Scope] = []
    results: list[list[Value]] = []
    for label, fill in zip(BRANCHES, fills, strict=True):
        inner, given = _inside(self, scope, args, f"{name}/{label}", "If")
        inners.append(inner)
        results.append(fill(inner, given))
    if len(results[0]) != len(results[1]):
        raise CorruptError(f"{self.file}: branches of {name!r} give as many values, got {list(map(len, results))}")
    written = list(dict.fromkeys([*inners[0].written, *inners[1].written]))
    kept = [_same_handle(a, b, name) for a, b in zip(*results, strict=True)]
    for inner, values in zip(inners, results, strict=True):
        given = [v for v, handle in zip(values, kept, strict=True) if handle is None]
        _add_results(self, inner, [*given, *(self.read(Handle(v), inner) for v in written)])
    sources, captures = branch_inputs(condition, BRANCHES, inners)
    count = kept.count(None)
    node = _add(self, scope, "If", sources, name, count + len(written), captures=captures, inputs=1)
    node.regions = {label: inner.graph for label, inner in zip(BRANCHES, inners, strict=True)}
    set_variables(scope, written, node, count)
    return _merged(kept, node)


def _same_handle(a: Value, b: Value, name: str) -> Handle | None:
    """Return the variable that both branches give; None where they give tensors."""
    if isinstance(a, Handle) and a == b:
        return a
    if isinstance(a, Handle) or isinstance(b, Handle):
        raise UnsupportedError(f"If: both branches give the same variable, got {a} and {b} in {name!r}")
    return None


def _merged(kept: Sequence[Handle | None], node: Node) -> list[Value]:
    """Handles, and the outputs of a node in the places without."""
    ports = iter(node.out_ports().values())
    return [next(ports) if handle is None else handle for handle in kept]


def _add_results(self: Importer, scope: Scope, values: Sequence[Value]) -> None:
    for value in values:
        port = self.given(value, scope, "region")
        scope.graph.add(Result(), port, name=port.node.name)


def _add(
    self: Importer, scope: Scope, kind: str, sources: Sequence[OutPort], name: str, outputs: int, **attrs: object
) -> Node:
    op = Foreign("tf", kind, tuple(attrs.items()))
    return scope.graph.add(op, *sources, name=name, origin=Origin((name,), self.file), outputs=outputs)


@rule("While", "StatelessWhile")
def while_(self: Importer, item: Item, scope: Scope, inputs: list[Value], name: str) -> list[Value]:
    _needs_inputs(self, item, inputs)
    condition, body = _net(self, item, "cond"), _net(self, item, "body")
    first = _truth(self, condition, inputs, scope, name)
    inner = Scope(Graph(name=f"{name}/body", file=self.file), scope)
    given = [v if isinstance(v, Handle) else self.parameter(inner, f"carried{i}") for i, v in enumerate(inputs)]
    outs = self.run_function(body, given, inner, f"{name}/body/")
    if len(outs) != len(inputs) or any(isinstance(v, Handle) and v != o for v, o in zip(inputs, outs, strict=True)):
        raise CorruptError(f"{self.file}: the body of {name!r} gives {len(inputs)} values like those that it takes")
    more = _truth(self, condition, outs, inner, f"{name}/next")
    written = carried_variables(inner, scope, self.first)
    values = [o for o in outs if not isinstance(o, Handle)]
    _add_results(self, inner, [more, *values, *(inner.values[v] for v in written)])
    carried = [self.given(v, scope, name) for v in inputs if not isinstance(v, Handle)]
    carried += [self.read(Handle(v), scope) for v in written]
    sources, captures = loop_inputs([first, *carried], written, inner)
    node = _add(self, scope, "While", sources, name, len(carried), captures=captures, inputs=1 + len(carried))
    node.regions = {"body": inner.graph}
    set_variables(scope, written, node, len(carried) - len(written))
    return _merged([v if isinstance(v, Handle) else None for v in inputs], node)


def _truth(self: Importer, condition: Net, args: Sequence[Value], scope: Scope, name: str) -> OutPort:
    found = self.run_function(condition, args, scope, f"{name}/cond/")
    if len(found) != 1:
        raise CorruptError(f"{self.file}: the condition of {name!r} gives one value, got {len(found)}")
    return self.given(found[0], scope, name)
