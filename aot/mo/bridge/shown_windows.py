"""Convolutions and pools in the middle phase: one node, as Model Optimizer had it.

x, [N, .., C] -> Transpose -> Convolution -> Transpose, with Transpose(weights)      the compiler's, of TensorFlow
x, [N, .., C] -> Convolution, with weights                                           Model Optimizer's
x, [N, C, ..] -> GroupConvolution, with Reshape(weights)                             the compiler's, of ONNX
x, [N, C, ..] -> Convolution, with weights                                           Model Optimizer's

The nodes around it are kept with the node that is shown, and put back before the back phase or the import. A copy, and
a node whose operation or layout an extension has changed, get new ones there.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.ir.op import Op as Definition
from aot.mo.bridge.node_records import KEPT, NodeRecord, are_equal, record_of
from aot.mo.bridge.operation import IDENTITY, is_new, operation_or_none
from aot.mo.bridge.values import attributes_of
from aot.mo.bridge.window_attributes import KINDS, POOLING, REPLACED, shown_attributes
from aot.mo.bridge.windows import to_first, to_last
from aot.mo.graph.graph import Graph, Node
from aot.mo.ops.layer_attributes import WINDOWS
from aot.mo.ops.permutations import Permutation
from aot.mo.utils.arrays import dynamic_dimension
from aot.opset.products.convolution import Convolution, GroupConvolution
from aot.passes.permutation import Order

WEIGHTS: dict[type[Definition], tuple[tuple[str, ...], ...]] = {
    Convolution: (("Transpose",),),
    GroupConvolution: (("Transpose", "Unsqueeze"), ("Transpose", "Reshape")),
}
LAYOUT = ("batch_dims", "channel_dims", "spatial_dims", "group")


@dataclass
class Run:
    """Nodes that were taken out of a graph: operations one after another, constants that they read, data nodes."""

    nodes: dict[str, dict[str, Any]]
    edges: list[tuple[str, str, dict[str, Any]]]
    first: str  # node that the run begins with
    last: str

    def put_back(self, graph: Graph) -> tuple[str, str]:
        """Add the nodes; return the ids of the first and the last one."""
        ids = {id: graph.unique_id(id) for id in self.nodes}
        for id, attrs in self.nodes.items():
            graph.add_node(ids[id], **attrs)
        for source, target, attrs in self.edges:
            graph.add_edge(ids[source], ids[target], **attrs)
        return ids[self.first], ids[self.last]


@dataclass
class Hidden:
    """The operations around a shown node, and the attributes of the node without them."""

    inputs: dict[int, Run]
    output: Run | None
    own: dict[str, Any]  # its attributes with channels first
    shown: dict[str, Any]  # those that extensions see
    name: str
    layout: dict[str, Any]  # its attributes that say which dimension is which
    order: Any  # of the dimensions of the weights; None if they are as the operation set has them
    held: dict[int, dict[str, Any]]  # shapes and values of the inputs

    def type_of(self, node: Any) -> str:
        """Return the operation sets' type for the type of a shown node."""
        type_ = node.soft_get("type")
        return str(self.own["type"] if type_ == POOLING else type_)

    def other_values(self, node: Any) -> dict[str, Any]:
        """Return the operation's values of attributes that are shown with others, or other names, and are not changed.

        None stands for the default.
        """
        same = {key for key, value in self.shown.items() if are_equal(node.soft_get(key, None), value)} - {*IDENTITY}
        kept = {key for key in same & self.own.keys() if not are_equal(self.own[key], self.shown[key])}
        kept |= {old for old, new in WINDOWS.items() if new in same}
        if {"pad", "auto_pad"} <= same:
            kept |= {"pads_begin", "pads_end"}  # which may be any beside `auto_pad`
        return {key: self.own.get(key) for key in kept}


def show_windows(graph: Graph) -> None:
    """Make one node of each convolution and pool; with channels last, of those between Transposes from and to it."""
    show = _show_channels_last if graph.graph["layout"] == "NHWC" else _show_channels_first
    records = [(node, record_of(node)) for node in graph.get_op_nodes()]
    for node, record in records:
        if record is not None and type(record.node.op) in KINDS:
            show(node, record)


def hide_windows(graph: Graph) -> None:
    """Put back the operations around the shown nodes, in bodies, too."""
    for node in graph.get_op_nodes():
        for name in node.soft_get("sub_graphs", []):
            hide_windows(node[name])
        record = record_of(node)
        if record is None or record.hidden is None:
            continue
        if record.is_copy or is_new(node) or _has_other_layout(node, record.hidden):
            node["type"] = record.hidden.type_of(node)
            for key, value in record.hidden.other_values(node).items():
                if key in node:
                    node[key] = value
            del node[KEPT]
        else:
            _hide(node, record, record.hidden)


def _show_channels_first(node: Any, record: NodeRecord) -> None:
    op: Any = record.node.op
    if not op.strides or not len(op.strides) == len(op.pads_begin) == len(op.pads_end):
        return  # a file of the operation sets may leave them out
    weights = _before(node, 1, ("Reshape",)) if type(op) is GroupConvolution else []
    if weights is None or (weights and not _joins_groups(node, weights[0])):
        return
    _replace(node, record, {1: weights} if weights else {}, None)


def _joins_groups(node: Any, reshape: Any) -> bool:
    """True if weights in groups, [G, O, I, ..], are a Reshape of [G * O, I, ..]."""
    whole, split = (port.data.get_shape() for port in (reshape.in_port(0), node.in_port(1)))
    if whole is None or split is None or any(d is dynamic_dimension for d in (*whole, *split)):
        return False
    return [int(d) for d in whole] == [int(split[0] * split[1]), *(int(d) for d in split[2:])]


def _show_channels_last(node: Any, record: NodeRecord) -> None:
    op: Any = record.node.op
    kind: type[Definition] = type(record.node.op)
    rank = len(op.strides) + 2
    before, follower = _before(node, 0, ("Transpose",)), _behind(node)
    if before is None or follower is None or rank not in (4, 5):
        return
    if not _has_order(before[0], to_first(rank - 2)):
        return
    if not _has_order(follower, to_last(rank - 2)):
        return
    nodes = [_before(node, 1, types) for types in WEIGHTS.get(kind, ())]
    weights = next((run for run in nodes if run is not None and _order(run[0]) is not None), None)
    if weights is None and kind is GroupConvolution:
        return
    _replace(node, record, {0: before} if weights is None else {0: before, 1: weights}, follower)


def _replace(node: Any, record: NodeRecord, runs: dict[int, list[Node]], follower: Node | None) -> None:
    """Take the operations around a node out of the graph, and give it attributes in their place."""
    graph, own, name = node.graph, record.attrs, node.name
    sources = {idx: run[0].in_node(0) for idx, run in runs.items()}
    data = sources.get(0, node.in_node(0))
    record.attrs = shown_attributes(node, record, data, runs.get(1, []), is_last=follower is not None)
    order = _order(runs[1][0]) if 1 in runs and follower is not None else None
    shapes_and_values = {idx: _shape_and_value(data) for idx, data in sources.items()}
    inputs = {idx: _without_inputs(node, idx, run) for idx, run in runs.items()}
    output = None if follower is None else _without_output(node, follower)
    layout = {key: record.attrs[key] for key in LAYOUT if key in record.attrs}
    record.hidden = Hidden(inputs, output, own, record.attrs, name, layout, order, shapes_and_values)
    for key in own.keys() & REPLACED:
        del node[key]
    for key, value in record.attrs.items():
        node[key] = value
    if order is not None:
        node["get_weights_permute"] = Permutation(order, np.argsort(order))
    if follower is not None and output is not None:
        node["name"] = output.nodes[follower.id]["name"]
        _give_id(graph, node.id, follower.id)  # extensions find nodes by names, which are ids


def _give_id(graph: Graph, old: str, new: str) -> None:
    attrs = graph.nodes[old]
    edges = [(new, v, d) for _, v, d in graph.out_edges(old, data=True)]
    edges += [(u, new, d) for u, _, d in graph.in_edges(old, data=True)]
    graph.remove_node(old)
    graph.add_node(new, **attrs)
    for source, target, edge in edges:
        graph.add_edge(source, target, **edge)


def _without_inputs(node: Any, idx: int, run: list[Any]) -> Run:
    """Connect an input to the source of the operations before it; return these."""
    graph, first, source = node.graph, run[0], run[0].in_node(0)
    edge = dict(first.in_edge(0))
    ids = [id for n in run for id in (n.id, n.out_node(0).id, *_constants(n))]
    taken = _taken(graph, ids, first.id, run[-1].out_node(0).id)
    graph.add_edge(source.id, node.id, **{**edge, "in": idx})
    return taken


def _without_output(node: Any, follower: Any) -> Run:
    """Give a node the output of the operation after it; return that operation."""
    graph, data, last_data = node.graph, node.out_node(0), follower.out_node(0)
    edge = dict(node.out_edge(0))
    taken = _taken(graph, [data.id, follower.id, *_constants(follower)], data.id, follower.id)
    graph.add_edge(node.id, last_data.id, **edge)
    return taken


def _hide(node: Any, record: NodeRecord, hidden: Hidden) -> None:
    op = operation_or_none(node)
    assert op is not None, "a shown node that is not new has its operation"
    for idx, run in hidden.inputs.items():
        if idx in node.in_nodes():
            _put_before(node, idx, run, hidden.held[idx])
    if hidden.output is not None:
        if 0 in node.out_nodes():
            _put_behind(node, hidden.output)
        node["name"] = hidden.name
    for key in {*record.attrs, "get_weights_permute"} & node.attrs().keys():
        del node[key]
    for key, value in {**hidden.own, **attributes_of(op)}.items():
        node[key] = value
    record.attrs, record.hidden = hidden.own, None


def _put_before(node: Any, idx: int, run: Run, shape_and_value: dict[str, Any]) -> None:
    """Put operations before an input; infer them if it reads another shape or value than it did."""
    graph, source, edge = node.graph, node.in_node(idx), dict(node.in_edge(idx))
    first, last = run.put_back(graph)
    graph.remove_edge(source.id, node.id)
    graph.add_edge(source.id, first, **{**edge, "in": 0})
    graph.add_edge(last, node.id, **{"in": idx})
    now = _shape_and_value(source)
    if any(not are_equal(now[key], value) for key, value in shape_and_value.items()):
        _infer(Node(graph, first), last)


def _put_behind(node: Any, run: Run) -> None:
    graph, data, edge = node.graph, node.out_node(0), dict(node.out_edge(0))
    first, last = run.put_back(graph)
    graph.remove_edge(node.id, data.id)
    graph.add_edge(node.id, first, **edge)
    graph.add_edge(last, data.id, out=0)
    graph.nodes[last]["name"] = node.soft_get("name", node.id)


def _shape_and_value(data: Any) -> dict[str, Any]:
    """Return shape and value of a data node, without a copy of the value."""
    attrs = data.graph.nodes[data.id]
    return {key: attrs.get(key) for key in ("shape", "value")}


def _shape(node: Any, idx: int) -> Any:
    return node.in_node(idx).soft_get("shape", None)


def _infer(node: Any, last: str) -> None:
    """Infer operations one after another up to the data node `last`."""
    data = node.out_node(0)
    data["shape"] = data["value"] = None
    node["infer"](node)
    if data.id != last:
        _infer(data.out_node(0), last)


def _has_other_layout(node: Any, hidden: Hidden) -> bool:
    """True if an extension has changed the attributes of layout, or the shape of weights in groups."""
    inputs = dict[int, dict[str, Any]]() if hidden.output is not None else hidden.held
    shapes = ((_shape(node, idx), before["shape"]) for idx, before in inputs.items() if idx in node.in_nodes())
    if not all(are_equal(now, then) for now, then in shapes):
        return True
    permutation = node.soft_get("get_weights_permute", None)
    order = None if permutation is None else permutation.perm
    return not are_equal(order, hidden.order) or any(
        not are_equal(node.soft_get(key, None), value) for key, value in hidden.layout.items()
    )


def _taken(graph: Graph, ids: Iterable[str], first: str, last: str) -> Run:
    """Take nodes out of a graph, with the edges between them."""
    nodes = {id: dict(graph.nodes[id]) for id in ids}
    edges = [(u, v, dict(d)) for u, v, d in graph.edges(nodes, data=True) if v in nodes]
    graph.remove_nodes_from(nodes)
    return Run(nodes, edges, first, last)


def _before(node: Any, idx: int, types: tuple[str, ...]) -> list[Node] | None:
    """Return the operations of these types before an input, if each has one consumer and constants of its own."""
    nodes: list[Node] = []
    for kind in reversed(types):
        data: Any = node.in_nodes().get(idx)
        if data is None or not data.in_nodes() or len(data.out_nodes()) != 1:
            return None
        producer: Any = data.in_node(0)
        if producer.soft_get("type") != kind or not _is_alone(producer):
            return None
        nodes.insert(0, producer)
        node, idx = producer, 0
    return nodes


def _behind(node: Any) -> Node | None:
    """Return the Transpose that alone reads the result."""
    outputs = node.out_nodes()
    consumers: list[Any] = outputs[0].out_nodes() if list(outputs) == [0] else []
    if len(consumers) != 1 or consumers[0].soft_get("type") != "Transpose" or not _is_alone(consumers[0]):
        return None
    return consumers[0] if 0 in consumers[0].out_nodes() else None


def _is_alone(node: Any) -> bool:
    """True for an operation with a data input and a constant, which nothing else reads."""
    data: Any = node.in_nodes().get(1)
    if data is None or 0 not in node.in_nodes() or len(data.out_nodes()) != 1 or not data.in_nodes():
        return False
    return data.in_node(0).soft_get("type") == "Const"


def _constants(node: Any) -> tuple[str, str]:
    data = node.in_node(1)
    return data.id, data.in_node(0).id


def _order(node: Any) -> Any:
    return node.in_node(1).soft_get("value", None)


def _has_order(node: Any, order: Order) -> bool:
    found = _order(node)
    return found is not None and np.array_equal(found, order)
