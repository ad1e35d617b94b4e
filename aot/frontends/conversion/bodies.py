"""Sub-graphs of nodes that are being converted: run in place, or made bodies of the opset's If and Loop."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from aot.codegen.ir.loops import Var
from aot.frontends.conversion.node_context import CompositeTensor, NodeContext, Outputs, PresentValue, Value
from aot.frontends.conversion.rank_branches import joined
from aot.ir.graph import Graph, OutPort
from aot.ir.types import Dim, TensorType
from aot.opset.control.control_flow import If
from aot.opset.control.infrastructure import Parameter
from aot.opset.control.port_maps import InputMap
from aot.runtime.errors import ModelError, UnsupportedError

BRANCHES = ("then_branch", "else_branch")


def region_of(node: NodeContext, name: str) -> Graph:
    node.refuse(name not in node.regions, f"it has no sub-graph {name}")
    return node.regions[name]


def inlined(node: NodeContext, name: str, inputs: Sequence[Value]) -> list[Value]:
    """Return the results of a region for its formal inputs; captured values are added."""
    region = region_of(node, name)
    inputs_of_region: list[Value] = [None] * len(region.parameters)
    captured = dict(node.captures[name])
    free = [i for i in range(len(inputs_of_region)) if i not in captured]
    node.refuse(len(free) != len(inputs), f"{name} has {len(free)} inputs, got {len(inputs)}")
    for i, value in zip(free, inputs, strict=True):
        inputs_of_region[i] = value
    for i, value in captured.items():
        inputs_of_region[i] = value
    return node.bodies.inline(region, inputs_of_region)


def branched(node: NodeContext, condition: OutPort) -> Outputs:
    """Return the results of one branch where the condition is known, else of the opset's If.

    If a branch does not fit the shapes of the inputs, the other one must run, which the library checks.
    """
    value = condition.value
    if value is not None and value.dtype != object:
        return Outputs(inlined(node, "then_branch" if value.reshape(-1)[0] else "else_branch", ()))
    ports: list[OutPort] = [condition]
    maps: list[tuple[InputMap, ...]] = []
    regions: list[tuple[Graph, list[PresentValue]]] = []
    for name in BRANCHES:
        values = [whole(v) for _, v in sorted(node.captures[name], key=lambda pair: pair[0])]
        operands = [port for value in values for port in ports_of(value)]
        maps.append(tuple(InputMap(external=len(ports) + i, parameter=i) for i in range(len(operands))))
        ports += operands
        regions.append((region_of(node, name), values))
    new_node = node.build.node(If(maps[0], (), maps[1], ()), *ports, outputs=0)
    return Outputs(node.bodies.branch_outputs(node, new_node, regions))


def ports_of(value: PresentValue) -> tuple[OutPort, ...]:
    """Return the tensors that a value consists of; each becomes one parameter of a region."""
    if isinstance(value, tuple):
        return value
    return (value,) if isinstance(value, OutPort) else value.ports


def number(port: OutPort | None) -> int | None:
    """Return the one element of a constant tensor."""
    value = None if port is None else port.value
    return None if value is None or value.dtype == object else int(value.reshape(-1)[0])


def tensor(value: Value) -> OutPort:
    value = joined(value)
    if not isinstance(value, OutPort):
        raise UnsupportedError("only tensors can be collected by a loop")
    return value


def whole(value: Value) -> PresentValue:
    """Return a value as a region takes it: one tensor, or a composite of tensors."""
    if isinstance(value, tuple):
        return tuple(tensor(part) for part in value)
    tensor_value = joined(value)
    return tensor_value if isinstance(tensor_value, CompositeTensor) else tensor(tensor_value)


def stable_region(
    node: NodeContext, body: Graph, values: list[PresentValue], known: Sequence[bool], carried: Mapping[int, int]
) -> tuple[Graph, list[Value]]:
    """Return a body for types that hold in every iteration, and the values that its results would have.

    `values` of its parameters are those of the first iteration; lists among them get the form that the body gives.
    `carried`: the result that becomes a parameter.
    """
    types = Graph("types")
    arguments = list(values)
    while True:
        graph, results = node.bodies.region(body, arguments, known)
        changed = False
        for i, r in carried.items():
            before, after = arguments[i], _fitting(node, values[i], results[r])
            formed = _formed(node, values, i, after)
            if formed is not values[i]:
                values[i] = arguments[i] = formed
                changed = True
                continue
            if len(ports_of(before)) != len(ports_of(after)):
                raise UnsupportedError(
                    f"{node.kind}: a list that a loop carries must keep its elements, got it without"
                )
            wider = [_wider(node, types, i, a, b) for a, b in zip(ports_of(before), ports_of(after), strict=True)]
            if any(a is not b for a, b in zip(wider, ports_of(before), strict=True)):
                arguments[i] = before.with_ports(wider) if isinstance(before, CompositeTensor) else wider[0]
                changed = True
        if not changed:
            return graph, results


def after_loop(inside: Value, ports: Iterator[OutPort]) -> PresentValue:
    """Return a carried value after the loop, made of the next of its outputs `ports`, in place of the body's."""
    found = whole(inside)
    outside = [next(ports) for _ in ports_of(found)]
    return found.with_ports(outside) if isinstance(found, CompositeTensor) else outside[0]


def _fitting(node: NodeContext, before: PresentValue, result: Value) -> PresentValue:
    after = whole(result)
    if isinstance(before, CompositeTensor) and isinstance(after, tuple):
        rule = "a sequence that a loop carries is changed by inserting and erasing, got another one in its place"
        raise UnsupportedError(f"{node.kind}: {rule}")
    if type(before) is not type(after):
        raise ModelError(f"{node.kind}: a carried value must keep its kind, got a tensor and a list")
    return after


def _formed(node: NodeContext, values: Sequence[PresentValue], i: int, after: PresentValue) -> PresentValue:
    """Return value `i` before the loop in the form that the body gives it."""
    value = values[i]
    if not isinstance(value, CompositeTensor) or not isinstance(after, CompositeTensor):
        return value
    return value.like(after, node.build, lambda dim: _outside(node, dim, values))


def _outside(node: NodeContext, dim: Dim, values: Sequence[PresentValue]) -> OutPort | None:
    """Return a size of the body as a vector outside: the size of a value that goes in; None if none has it."""
    for value in values:
        for port in ports_of(value):
            for axis, own in enumerate(port.shape):
                if own == dim:
                    return node.dims(port, [axis])
    return None


def _wider(node: NodeContext, types: Graph, i: int, before: OutPort, after: OutPort) -> OutPort:
    """Return a port of a type that fits a carried value before and after an iteration; `before` if its own does."""
    if before.type.dtype is not after.type.dtype:
        raise ModelError(f"{node.kind}: a carried value must keep its type, got {before.type} and then {after.type}")
    wider = widened(i, before.type, after.type)
    return before if wider == before.type else types.add(Parameter(wider.dtype, wider.dims)).out_port(0)


def widened(parameter: int, before: TensorType, after: TensorType) -> TensorType:
    """Return the type of a carried value, with symbols for sizes that change."""
    if before.rank != after.rank:
        raise UnsupportedError(f"a carried value keeps its rank, got {before} and then {after}")
    sizes = [Var(f"p{parameter}.d{k}") for k in range(before.rank)]
    rows = zip(before.shape, after.shape, sizes, strict=True)
    return TensorType(before.dtype, tuple(b if b in (a, size) else size for b, a, size in rows))
