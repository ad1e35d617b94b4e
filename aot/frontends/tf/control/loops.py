"""While: the opset's Loop, whose body ends with the condition.

Values that the body hands on unchanged are inputs and not carried. Lists of tensors are carried as the tensor that they
lie in; lists that are empty before the first iteration begin with zeros of the shape that the body gives.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from aot.frontends.conversion.bodies import number, ports_of, region_of, whole, widened
from aot.frontends.conversion.calls import Packed
from aot.frontends.tf.control.tensor_list import TensorList, zeros
from aot.frontends.tf.registry import Call, Outputs, Value, tf
from aot.ir.graph import Graph, OutPort
from aot.ir.op import Foreign
from aot.ir.types import Dim, dim_text
from aot.opset.control.control_flow import Loop
from aot.opset.control.infrastructure import Parameter, Result
from aot.opset.control.port_maps import BackEdge, InputMap, OutputMap
from runtime.abi import DType
from runtime.errors import ModelError, UnsupportedError

Given = OutPort | Packed


@tf("While", takes_complex=True)
def while_(node: Call, going: OutPort, *states: Value) -> Outputs:
    if number(going) == 0:
        return Outputs(states)
    body, captured = region_of(node, "body"), dict(node.captures["body"])
    free = [i for i in range(len(body.parameters)) if i not in captured]
    if len(free) != len(states):
        raise ModelError(f"{node.kind}: the body carries {len(free)} values, got {len(states)}")
    values = {i: whole(v) for i, v in (*captured.items(), *zip(free, states, strict=True))}
    carried = {i: k for k, i in enumerate(free) if not _is_kept(body, i, k)}
    graph, results = _stable(node, body, values, carried)
    made = _loop(node, going, graph, values, carried, results)
    ports = iter(made)
    outs = [values[i] if i not in carried else _packed(results[1 + k], ports) for k, i in enumerate(free)]
    return Outputs(outs)


def _packed(inside: Value, ports: Iterator[OutPort]) -> Given:
    """Return a carried value after the loop, in place of that which the body gives."""
    found = whole(inside)
    outside = [next(ports) for _ in ports_of(found)]
    return outside[0] if isinstance(found, OutPort) else found.with_ports(outside)


def _is_kept(body: Graph, i: int, k: int) -> bool:
    """True if carried value k, parameter i, never changes."""
    port = body.results[1 + k].source(0)
    while isinstance(port.node.op, Foreign) and port.node.op.kind == "Identity":
        port = port.node.source(0)
    return port is body.parameters[i].out_port(0)


def _stable(node: Call, body: Graph, values: dict[int, Given], carried: Mapping[int, int]) -> tuple[Graph, list[Value]]:
    """Return the body for types that hold in every iteration, and its results. `values` gets data of empty lists."""
    types = Graph("types")
    given = [values[i] for i in range(len(values))]
    known = [i not in carried for i in range(len(values))]
    while True:
        graph, results = node.bodies.region(body, given, known)
        changed = False
        for i, k in carried.items():
            after = _fitting(node, values[i], whole(results[1 + k]))
            before = given[i]
            if len(ports_of(before)) == len(ports_of(after)) and _has_data(before) == _has_data(after):
                wider = [_wider(types, i, a, b) for a, b in zip(ports_of(before), ports_of(after), strict=True)]
                if all(a is b for a, b in zip(wider, ports_of(before), strict=True)):
                    continue
                given[i] = wider[0] if isinstance(before, OutPort) else before.with_ports(wider)
            elif isinstance(before, TensorList) and isinstance(after, TensorList) and after.data is not None:
                values[i] = given[i] = _begun(node, before, after.data, values)
            else:
                raise UnsupportedError(f"{node.kind}: a list that a loop carries keeps its elements, got it without")
            changed = True
        if not changed:
            return graph, results


def _has_data(value: Given) -> bool:
    return not isinstance(value, TensorList) or value.data is not None


def _fitting(node: Call, before: Given, after: Given) -> Given:
    if type(before) is not type(after):
        raise ModelError(f"{node.kind}: a carried value keeps its kind, got a tensor and a list")
    return after


def _wider(types: Graph, i: int, before: OutPort, after: OutPort) -> OutPort:
    """Return a port of a type that fits a carried value before and after an iteration; `before` if its own does."""
    if before.type.dtype is not after.type.dtype:
        raise ModelError(f"While: a carried value keeps its type, got {before.type} and then {after.type}")
    wider = widened(i, before.type, after.type)
    return before if wider == before.type else types.add(Parameter(wider.dtype, wider.dims)).out_port(0)


def _begun(node: Call, xs: TensorList, data: OutPort, values: Mapping[int, Given]) -> TensorList:
    """Return an empty list with zeros of the shape that elements have in the body."""
    return zeros(node, xs, [_outside(node, d, values) for d in data.shape[1:]])


def _outside(node: Call, dim: Dim, values: Mapping[int, Given]) -> Dim | OutPort:
    """Return a size of the body as a vector outside: a number, or a size of an input."""
    if isinstance(dim, int):
        return dim
    for value in values.values():
        for port in ports_of(value):
            for axis, own in enumerate(port.shape):
                if own == dim:
                    return node.dims(port, [axis])
    rule = "the elements of a list have sizes of values that go into the loop"
    hint = "sizes of inputs that are equal get one name by --shape"
    raise UnsupportedError(f"{node.kind}: {rule}, got {dim_text(dim)}: {hint}")


def _loop(
    node: Call,
    going: OutPort,
    graph: Graph,
    values: Mapping[int, Given],
    carried: Mapping[int, int],
    results: Sequence[Value],
) -> list[OutPort]:
    """Add the Loop; its outputs are the tensors of carried values, in order."""
    sources, places = list[OutPort](), dict[int, int]()  # the first parameter of each value
    for i in range(len(values)):
        places[i] = len(sources)
        sources += ports_of(values[i])
    condition = whole(results[0])
    if not isinstance(condition, OutPort) or condition.type.dtype is not DType.BOOL:
        raise ModelError(f"{node.kind}: the condition is a boolean, got {condition}")
    graph.add(Result(), condition, name="condition")
    edges = list[BackEdge]()
    for i, k in carried.items():
        for n, port in enumerate(ports_of(whole(results[1 + k]))):
            edges.append(BackEdge(len(graph.results), places[i] + n))
            graph.add(Result(), port, name=port.node.name)
    op = Loop(
        input_maps=tuple(InputMap(external=2 + i, parameter=i) for i in range(len(sources))),
        output_maps=tuple(OutputMap(external=m, result=e.result) for m, e in enumerate(edges)),
        back_edges=tuple(edges),
        execution_condition=0,
    )
    first = node.cast(node.single(going), DType.BOOL)
    made = node.build.node(op, node.scalar(-1), first, *sources, outputs=len(edges))
    made.regions = {"body": graph}
    return list(made.out_ports().values())
