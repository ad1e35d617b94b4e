"""If, Case and While of functions: foreign nodes with regions, as the conversions of control flow take them.

`aot.frontends.conversion.regions` makes the regions, from what the walk over a function gives.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aot.frontends.conversion.bodies import BRANCHES
from aot.frontends.conversion.regions import Control, Fill
from aot.frontends.conversion.scopes import Scope, Value, foreign
from aot.frontends.tf.graph.importer import Importer, rule
from aot.frontends.tf.graph.nets import Item, Net, function_net
from aot.ir.graph import Node, OutPort
from aot.ir.op import Foreign
from aot.ir.origin import Origin
from aot.runtime.errors import CorruptError

_BOOLEAN = 10  # DT_BOOL


def _net(self: Importer, item: Item, attribute: str) -> Net:
    return item.nets[attribute] if attribute in item.nets else self.net(item.function(attribute), item, attribute)


def _needs_inputs(self: Importer, item: Item, inputs: Sequence[Value]) -> None:
    if not inputs:
        raise CorruptError(f"{self.file}: {item.kind}: {item.name!r} must have inputs, got none")


@rule("If", "StatelessIf")
def if_(self: Importer, item: Item, scope: Scope, inputs: list[Value], name: str) -> list[Value]:
    _needs_inputs(self, item, inputs)
    condition = self.tensor_of(inputs[0], scope, item.kind)
    if item.type("Tcond") not in (0, _BOOLEAN):
        condition = foreign(scope, "ToBool", condition, name=f"{name}/condition", file=self.file)
    fills = [_filled(self, _net(self, item, label)) for label in BRANCHES]
    return _control(self, "If", scope, name).branches(condition, fills, inputs[1:])


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
        raise CorruptError(f"{self.file}: Case: {name!r} must have branches, got none")
    return _chosen(self, fills, 0, inputs, scope, name)


def _chosen(self: Importer, fills: list[Fill], k: int, inputs: Sequence[Value], scope: Scope, name: str) -> list[Value]:
    """Branch k where input 0 is k; else one of the later branches."""
    index, *args = inputs
    if k == len(fills) - 1:
        return fills[k](scope, args, "")
    number = self.constant(scope, np.array(k, np.int32), f"{name}/number{k}")
    index = self.tensor_of(index, scope, "Case")
    condition = foreign(scope, "Equal", index, number, name=f"{name}/is{k}", file=self.file)

    def first(inner: Scope, arguments: Sequence[Value], prefix: str) -> list[Value]:
        return fills[k](inner, arguments[1:], prefix)

    def others(inner: Scope, arguments: Sequence[Value], prefix: str) -> list[Value]:
        del prefix
        return _chosen(self, fills, k + 1, arguments, inner, name)

    return _control(self, "If", scope, f"{name}/case{k}").branches(condition, [first, others], inputs)


def _filled(self: Importer, net: Net, prefix: str = "") -> Fill:
    """Return the walk of a net in a region. `prefix`: of its names, instead of the region's."""
    return lambda scope, arguments, own: self.run_function(net, arguments, scope, prefix or own)


def _control(self: Importer, kind: str, scope: Scope, name: str) -> Control:
    def add(scope: Scope, sources: Sequence[OutPort], outputs: int, **attrs: object) -> Node:
        op = Foreign("tf", kind, tuple(attrs.items()))
        return scope.graph.add(op, *sources, name=name, origin=Origin((name,), self.file), outputs=outputs)

    return Control(name, self.file, kind, self.file, scope, self.first, self.tensor_of, add)


@rule("While", "StatelessWhile")
def while_(self: Importer, item: Item, scope: Scope, inputs: list[Value], name: str) -> list[Value]:
    _needs_inputs(self, item, inputs)
    condition, body = (_filled(self, _net(self, item, part)) for part in ("cond", "body"))
    return _control(self, "While", scope, name).loop(condition, body, inputs)
