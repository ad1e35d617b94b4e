"""If and While of functions become foreign nodes with regions, as the conversions of control flow take them.

    If(c, x, v)       ->    If(c, ...): then_branch, else_branch
    While(x, v)       ->    While(cond(x), x, v0): body gives (cond(x'), x', v1)

All that a branch reads is captured: attribute `captures` says which parameter of which region is which input. A loop's
region has the body and then the condition, so that both are walked in one order. Variables that a region sets are
further outputs of its node.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from aot.codegen.dataclass import dataclass
from aot.frontends.conversion.bodies import BRANCHES
from aot.frontends.conversion.scopes import (
    First,
    Handle,
    Scope,
    Value,
    branch_inputs,
    carried_variables,
    loop_inputs,
    set_variables,
)
from aot.ir.graph import Graph, Node, OutPort
from aot.opset.control.infrastructure import Parameter, Result
from aot.runtime.abi import DType
from aot.runtime.errors import CorruptError, UnsupportedError

Fill = Callable[[Scope, Sequence[Value], str], list[Value]]  # fills a graph: values of parameters, prefix -> results


@dataclass(frozen=True, slots=True)
class Control:
    """An operation of control flow in a file; `what` and `kind` are its names in errors and in its regions."""

    name: str
    what: str
    kind: str
    file: str
    scope: Scope  # around it
    first: First
    tensor: Callable[[Value, Scope, str], OutPort]  # a value that must be a tensor
    add: Callable[..., Node]  # scope, sources, number of outputs, attributes

    def _results(self, inner: Scope, values: Sequence[Value]) -> None:
        for value in values:
            port = self.tensor(value, inner, self.kind)
            inner.graph.add(Result(), port, name=port.node.name)

    def _truth(self, condition: Fill, args: Sequence[Value], scope: Scope, name: str) -> OutPort:
        found = condition(scope, args, f"{name}/cond/")
        if len(found) != 1:
            raise CorruptError(f"{self.what}: the condition of {self.name!r} must give one value, got {len(found)}")
        return self.tensor(found[0], scope, self.kind)

    def branches(self, condition: OutPort, fills: Sequence[Fill], args: Sequence[Value]) -> list[Value]:
        """Return the results of an If, and in its scope the values of variables that a branch sets."""
        scope, inners, results = self.scope, list[Scope](), list[list[Value]]()
        for label, fill in zip(BRANCHES, fills, strict=True):
            inner = Scope(Graph(name=f"{self.name}/{label}", file=self.file), scope)
            inners.append(inner)
            arguments = [v if isinstance(v, Handle) else self._enter(inner, v) for v in args]
            results.append(fill(inner, arguments, f"{self.name}/{label}/"))
        if len(results[0]) != len(results[1]):
            rule = f"both branches of {self.name!r} give as many values"
            raise CorruptError(f"{self.what}: {rule}, got {[*map(len, results)]}")
        written = list(dict.fromkeys([*inners[0].written, *inners[1].written]))
        handles = [self._same_handle(a, b) for a, b in zip(*results, strict=True)]
        for inner, values in zip(inners, results, strict=True):
            arguments = [v for v, handle in zip(values, handles, strict=True) if handle is None]
            self._results(inner, [*arguments, *(inner.read(v, self.first) for v in written)])
        sources, captures = branch_inputs(condition, BRANCHES, inners)
        count = handles.count(None)
        node = self.add(scope, sources, count + len(written), captures=captures, inputs=1)
        node.regions = {label: inner.graph for label, inner in zip(BRANCHES, inners, strict=True)}
        set_variables(scope, written, node, count)
        return _merged(handles, node)

    def _enter(self, inner: Scope, value: Value) -> OutPort:
        return inner.enter(self.kind, self.tensor(value, self.scope, self.kind))

    def _same_handle(self, a: Value, b: Value) -> Handle | None:
        """Return the variable that both branches give; None if they give tensors."""
        if isinstance(a, Handle) and a == b:
            return a
        if isinstance(a, Handle) or isinstance(b, Handle):
            raise UnsupportedError(
                f"{self.kind}: both branches must give the same variable, got {a} and {b} in {self.name!r}"
            )
        return None

    def loop(self, condition: Fill, body: Fill, inputs: Sequence[Value]) -> list[Value]:
        """Return the results of a While, and in its scope the values of variables that its body sets."""
        scope, name = self.scope, self.name
        first = self._truth(condition, inputs, scope, name)
        inner = Scope(Graph(name=f"{name}/body", file=self.file), scope)
        given = [v if isinstance(v, Handle) else parameter(inner, f"carried{i}") for i, v in enumerate(inputs)]
        outs = body(inner, given, f"{name}/body/")
        if len(outs) != len(inputs) or any(isinstance(v, Handle) and v != o for v, o in zip(inputs, outs, strict=True)):
            raise CorruptError(f"{self.what}: the body of {name!r} gives {len(inputs)} values like those that it takes")
        more = self._truth(condition, outs, inner, f"{name}/next")
        written = carried_variables(inner, scope, self.first)
        self._results(inner, [more, *(o for o in outs if not isinstance(o, Handle)), *map(inner.values.get, written)])
        carried = [self.tensor(v, scope, self.kind) for v in inputs if not isinstance(v, Handle)]
        carried += [scope.read(v, self.first) for v in written]
        sources, captures = loop_inputs([first, *carried], written, inner)
        node = self.add(scope, sources, len(carried), captures=captures, inputs=1 + len(carried))
        node.regions = {"body": inner.graph}
        set_variables(scope, written, node, len(carried) - len(written))
        return _merged([v if isinstance(v, Handle) else None for v in inputs], node)


def parameter(scope: Scope, name: str) -> OutPort:
    """Add a parameter; inference will find its type."""
    return scope.graph.add(Parameter(DType.F32, None), name=name).out_port(0)


def _merged(kept: Sequence[Handle | None], node: Node) -> list[Value]:
    """Return handles, and the outputs of a node in the places without."""
    ports = iter(node.out_ports().values())
    return [next(ports) if handle is None else handle for handle in kept]
