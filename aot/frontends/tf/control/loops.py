"""While: the opset's Loop with a body that ends with the condition.

Values that the body hands on unchanged are inputs and not carried. Lists of tensors are carried as the tensor that they
lie in; lists that are empty before the first iteration begin with zeros of the shape that the body gives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aot.frontends.conversion.bodies import after_loop, number, ports_of, region_of, stable_region, whole
from aot.frontends.conversion.node_context import NodeContext, PresentValue
from aot.frontends.tf.registry import Outputs, Value, tf
from aot.ir.graph import Graph, OutPort
from aot.ir.op import Foreign
from aot.opset.control.control_flow import Loop
from aot.opset.control.infrastructure import Result
from aot.opset.control.port_maps import BackEdge, InputMap, OutputMap
from aot.runtime.abi import DType
from aot.runtime.errors import ModelError


@tf("While", takes_complex=True)
def while_(node: NodeContext, going: OutPort, *states: Value) -> Outputs:
    if number(going) == 0:
        return Outputs(states)
    body, captured = region_of(node, "body"), dict(node.captures["body"])
    free = [i for i in range(len(body.parameters)) if i not in captured]
    if len(free) != len(states):
        raise ModelError(f"{node.kind}: the body must carry {len(free)} values, got {len(states)}")
    given = {i: whole(v) for i, v in (*captured.items(), *zip(free, states, strict=True))}
    values = [given[i] for i in range(len(body.parameters))]
    carried = {i: 1 + k for k, i in enumerate(free) if not _is_loop_invariant(body, i, k)}
    graph, results = stable_region(node, body, values, [i not in carried for i in range(len(values))], carried)
    loop = _loop(node, going, graph, values, carried, results)
    ports = iter(loop)
    outs = [values[i] if i not in carried else after_loop(results[carried[i]], ports) for i in free]
    return Outputs(outs)


def _is_loop_invariant(body: Graph, i: int, k: int) -> bool:
    """True if carried value k, parameter i, never changes."""
    port = body.results[1 + k].source(0)
    while isinstance(port.node.op, Foreign) and port.node.op.kind == "Identity":
        port = port.node.source(0)
    return port is body.parameters[i].out_port(0)


def _loop(
    node: NodeContext,
    going: OutPort,
    graph: Graph,
    values: Sequence[PresentValue],
    carried: Mapping[int, int],
    results: Sequence[Value],
) -> list[OutPort]:
    """Add the Loop; its outputs are the tensors of carried values, in order."""
    sources, first_parameters = list[OutPort](), dict[int, int]()
    for i, value in enumerate(values):
        first_parameters[i] = len(sources)
        sources += ports_of(value)
    condition = whole(results[0])
    if not isinstance(condition, OutPort) or condition.type.dtype is not DType.BOOL:
        raise ModelError(f"{node.kind}: the condition must be a boolean, got {condition}")
    graph.add(Result(), condition, name="condition")
    edges = list[BackEdge]()
    for i, r in carried.items():
        for n, port in enumerate(ports_of(whole(results[r]))):
            edges.append(BackEdge(len(graph.results), first_parameters[i] + n))
            graph.add(Result(), port, name=port.node.name)
    op = Loop(
        input_maps=tuple(InputMap(external=2 + i, parameter=i) for i in range(len(sources))),
        output_maps=tuple(OutputMap(external=m, result=e.result) for m, e in enumerate(edges)),
        back_edges=tuple(edges),
        execution_condition=0,
    )
    first = node.cast(node.single(going), DType.BOOL)
    loop = node.build.node(op, node.scalar(-1), first, *sources, outputs=len(edges))
    loop.regions = {"body": graph}
    return list(loop.out_ports().values())
