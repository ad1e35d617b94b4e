"""Sub-graphs of nodes that are being converted: run in place, or made bodies of the opset's If and Loop."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from aot.frontends.conversion.calls import Call, Outputs, Packed, Value
from aot.frontends.conversion.forks import joined
from aot.ir.graph import Graph, OutPort
from aot.ir.types import TensorType
from aot.opset.control.control_flow import If
from aot.opset.control.infrastructure import Parameter
from aot.opset.control.port_maps import InputMap
from codegen.ir.loops import Var
from runtime.errors import UnsupportedError

BRANCHES = ("then_branch", "else_branch")


def region_of(node: Call, name: str) -> Graph:
    node.refuse(name not in node.regions, f"it has no sub-graph {name}")
    return node.regions[name]


def inlined(node: Call, name: str, inputs: Sequence[Value]) -> list[Value]:
    """Return the results of a region for its formal inputs; captured values are added."""
    region = region_of(node, name)
    given: list[Value] = [None] * len(region.parameters)
    positions = dict(node.captures[name])
    free = [i for i in range(len(given)) if i not in positions]
    node.refuse(len(free) != len(inputs), f"{name} has {len(free)} inputs, got {len(inputs)}")
    for i, value in zip(free, inputs, strict=True):
        given[i] = value
    for i, value in positions.items():
        given[i] = value
    return node.bodies.inline(region, given)


def branched(node: Call, condition: OutPort) -> Outputs:
    """Return the results of one branch where the condition is known, else of the opset's If.

    If a branch does not fit the shapes of the inputs, the other one must run, which the library checks.
    """
    value = condition.value
    if value is not None and value.dtype != object:
        return Outputs(inlined(node, "then_branch" if value.reshape(-1)[0] else "else_branch", ()))
    ports: list[OutPort] = [condition]
    maps: list[tuple[InputMap, ...]] = []
    regions: list[tuple[Graph, list[OutPort | Packed]]] = []
    for name in BRANCHES:
        values = [whole(v) for _, v in sorted(node.captures[name], key=lambda pair: pair[0])]
        given = [port for value in values for port in ports_of(value)]
        maps.append(tuple(InputMap(external=len(ports) + i, parameter=i) for i in range(len(given))))
        ports += given
        regions.append((region_of(node, name), values))
    made = node.build.node(If(maps[0], (), maps[1], ()), *ports, outputs=0)
    return Outputs(node.bodies.fork(node, made, regions))


def ports_of(value: OutPort | Packed) -> tuple[OutPort, ...]:
    """Return the tensors that a value is made of, each of which is one parameter of a region."""
    return (value,) if isinstance(value, OutPort) else value.ports


def number(port: OutPort | None) -> int | None:
    """Return the one element of a tensor, where compile time knows it."""
    value = None if port is None else port.value
    return None if value is None or value.dtype == object else int(value.reshape(-1)[0])


def tensor(value: Value) -> OutPort:
    value = joined(value)
    if not isinstance(value, OutPort):
        raise UnsupportedError("only tensors can be collected by a loop")
    return value


def whole(value: Value) -> OutPort | Packed:
    """Return a value in the form in which a region takes it: a tensor, or made of tensors."""
    found = joined(value)
    return found if isinstance(found, Packed) else tensor(found)


def stable_body(
    node: Call, body: Graph, ports: Sequence[OutPort], captured: Container[int], carried: Mapping[int, int]
) -> Graph:
    """Convert a body for sizes that hold in every iteration. `carried`: the result that becomes a parameter."""
    known = [i in captured for i in range(len(ports))]
    types = Graph("types")
    given = list(ports)
    while True:
        made = node.bodies.separate(body, given, known)
        wider = {i: widened(i, given[i].type, made.results[r].source(0).type) for i, r in carried.items()}
        if all(wider[i] == given[i].type for i in carried):
            return made
        for i, type in wider.items():
            given[i] = types.add(Parameter(type.dtype, type.dims)).out_port(0)


def widened(parameter: int, before: TensorType, after: TensorType) -> TensorType:
    """Return the type of a carried value, with symbols for sizes that change."""
    if before.rank != after.rank:
        raise UnsupportedError(f"a carried value keeps its rank, got {before} and then {after}")
    sizes = [Var(f"p{parameter}.d{k}") for k in range(before.rank)]
    rows = zip(before.shape, after.shape, sizes, strict=True)
    return TensorType(before.dtype, tuple(b if b in (a, size) else size for b, a, size in rows))
