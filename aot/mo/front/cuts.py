"""Inputs and outputs where the user cuts a network; and the data nodes that follow the front phase."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import numpy as np

from aot.mo.graph.cleaning import reverse_dfs
from aot.mo.graph.data import with_properties
from aot.mo.graph.graph import Graph, Node, add_opoutput
from aot.mo.graph.tensor_names import INFO
from aot.mo.ops.parameter import Parameter
from aot.mo.utils.arrays import dynamic_dimension_value, shape_array
from aot.mo.utils.error import Error

Place = dict[
    str, Any
]  # `in` or `out`: the number of a port; `shape`, `data_type` of an input; `added` when it is there
_PLACE = re.compile(r"(?:(\d+):)?(.+?)(?::(\d+))?")


def split_node_in_port(node_id: Any) -> tuple[Any, int | None]:
    """Return node and port of `port:node` or `node:port`; None for the port without one."""
    parts = node_id.split(":") if isinstance(node_id, str) else []
    if len(parts) > 1 and parts[0].isdigit():
        return ":".join(parts[1:]), int(parts[0])
    if len(parts) > 1 and parts[-1].isdigit():
        return ":".join(parts[:-1]), int(parts[-1])
    return node_id, None


def get_node_id_with_ports(graph: Graph, node_name: str, skip_if_no_port: bool = True) -> tuple[str, str, int | None]:
    """Return the node of `name`, `port:name` or `name:port`, `port`, `in` or `out`, and the port's number.

    `skip_if_no_port`: a node without that port does not count. Error if none fits, or several.
    """
    names = {str(node.soft_get("name", node.id)) for node in graph.get_op_nodes()}
    candidates: list[tuple[str, str, int | None]] = [(node_name, "port", None)] if node_name in names else []
    matched = _PLACE.fullmatch(node_name)
    before, after = (matched[1], matched[3]) if matched else (None, None)
    if before is not None and (name := node_name.partition(":")[2]) in names:
        candidates.append((name, "in", int(before)))
    if after is not None and (name := node_name.rpartition(":")[0]) in names:
        candidates.append((name, "out", int(after)))
    ids = [(graph.get_node_id_by_name(name), side, port) for name, side, port in candidates]
    ids = [(id, side, port) for id, side, port in ids if not skip_if_no_port or _has_port(graph, id, side, port)]
    if not ids:
        raise Error("No node with name {}", node_name)
    if len(ids) > 1:
        rule = "Name collision was found, there are several nodes for mask {!r}: {}"
        raise Error(rule, node_name, [id for id, _, _ in ids])
    return ids[0]


def _has_port(graph: Graph, id: str, side: str, port: int | None) -> bool:
    node = Node(graph, id)
    return port is None or port in (node.in_nodes() if side == "in" else node.out_nodes())


def get_new_placeholder_name(node_id: str, is_out_port: bool = False, port: int | None = 0) -> str:
    """Return the name of the Parameter that takes the place of the source of an input, or of an output."""
    return f"{node_id}/placeholder{'_out' if is_out_port else ''}_port_{port}"


def input_user_data_repack(
    graph: Graph,
    input_user_shapes: Any,
    freeze_placeholder: dict[str, Any] | None,
    input_user_data_types: dict[str, Any] | None = None,
) -> tuple[dict[str, list[Place]] | None, dict[str, Any] | None]:
    """Return the cut points of inputs that the user names, by nodes, and values by the Parameters that have them.

    `input_user_shapes`: names, shapes by names, the shape of the only input that has no value, or None. Error if
    there are several, and for a value at a new place without a shape.
    """
    known = graph.get_nodes_with_attributes(op="Parameter")
    values = {name: get_node_id_with_ports(graph, name) for name in freeze_placeholder or {}}
    own = {name for name, (id, _, port) in values.items() if port is None and id in known}
    frozen: dict[str, Any] = {values[n][0]: v for n, v in (freeze_placeholder or {}).items() if n in own}
    shapes, types = input_user_shapes, input_user_data_types or {}
    cut_points: dict[str, list[Place]] = defaultdict(list)
    if isinstance(shapes, np.ndarray):
        left = known if len(known) == 1 else [id for id in known if id not in frozen]
        if len(left) != 1:
            raise Error("a shape without a name is that of the only input, got inputs {}", ", ".join(left))
        cut_points[left[0]].append({"shape": shapes, "port": None})
    for name in () if shapes is None or isinstance(shapes, np.ndarray) else shapes:
        id, side, port = get_node_id_with_ports(graph, name)
        type_ = {"data_type": types[name]} if types.get(name) is not None else {}
        cut_points[id].append({"shape": shapes[name] if isinstance(shapes, dict) else None, side: port, **type_})
    for id in frozen if shapes is not None else ():
        cut_points[id] = cut_points[id] or [{"shape": None, "port": None}]
    for name in values.keys() - own:
        id, side, port = values[name]
        if not any(p["shape"] is not None and p.get(side, name) == port for p in cut_points.get(id, ())):
            raise Error("a value at a new input has a shape, got none for {}", name)
        frozen[get_new_placeholder_name(id, side == "out", port)] = (freeze_placeholder or {})[name]
    return None if shapes is None else cut_points, None if freeze_placeholder is None else frozen


def output_user_data_repack(graph: Graph, outputs: Iterable[str] | None) -> dict[str, list[Place]] | None:
    """Return the cut points of outputs that the user names, by nodes: `{"in": 1}`, `{"out": 0}` or `{"port": None}`."""
    if outputs is None:
        return None
    cut_points: dict[str, list[Place]] = defaultdict(list)
    for output in outputs:
        id, side, port = get_node_id_with_ports(graph, output)
        cut_points[id].append({side: port})
    return cut_points


def add_output_ops(
    graph: Graph, user_defined_outputs: dict[str, list[Place]] | None, inputs: dict[str, Any] | None = None
) -> list[str]:
    """Put Results where the user wants outputs, in place of all others; return their ids.

    None: after each node that an input, of `inputs` if they are given, reaches and nothing reads.
    """
    graph.remove_nodes_from(graph.get_nodes_with_attributes(op="Result"))
    if user_defined_outputs is None:
        return _results_of_ends(graph, graph.get_nodes_with_attributes(op="Parameter") if inputs is None else inputs)
    sinks: list[str] = []
    for id, cut_points in user_defined_outputs.items():
        if id not in graph:
            raise Error("Node {!r} does not exist in the graph", id)
        for cut_point in cut_points:
            sinks += [add_opoutput(graph, *source, user_defined_name=id) for source in _sources(graph, id, cut_point)]
    return sinks


def _results_of_ends(graph: Graph, inputs: Iterable[str]) -> list[str]:
    reached: set[str] = set()
    for id in inputs:
        graph.dfs(node_name=id, visited=reached)
    ends = [id for id in graph.nodes() if not list(graph.out_edges(id)) and id in reached]
    counts = {id: int(Node(graph, id).soft_get("out_ports_count", 1)) for id in ends}
    return [add_opoutput(graph, id, port, False) for id in ends for port in range(counts[id])]


def _sources(graph: Graph, id: str, cut_point: Place) -> list[tuple[str, int]]:
    """Return the node and the output that an output of the network reads."""
    side = next((side for side in ("in", "out") if side in cut_point), None)
    if side is None:
        return [(id, 0)]
    edges: list[Any] = list((graph.in_edges if side == "in" else graph.out_edges)(id, data=True))
    sources = [(source, int(edge["out"])) for source, _, edge in edges if edge.get(side) == cut_point[side]]
    if not sources:
        what = "input" if side == "in" else "output"
        raise Error("Port index {} is out of number of available {} ports for node {!r}", cut_point[side], what, id)
    return list(dict.fromkeys(sources))


def add_input_op(
    graph: Graph,
    node_id: str,
    port: int = 0,
    data: bool = False,
    shape: Any = None,
    user_shape: Any = None,
    data_type: Any = None,
    is_out_port: bool = False,
) -> str:
    """Add a Parameter that input `port` of a node reads, or that the consumers of that output read; return its id.

    `data`: the graph has data nodes. The edges or data nodes that are there before are not removed.
    """
    node = Node(graph, node_id)
    label = str(node.soft_get("name"))
    names = [(label, f"{label}:{port}" if is_out_port else f"{port}:{label}")]
    if not is_out_port and port == 0 and not graph.has_tensor_name(label):
        names.append((label, label))
    attrs = {"shape": shape, "user_shape": user_shape, "data_type": np.float32 if data_type is None else data_type}
    name = get_new_placeholder_name(node_id, is_out_port, port)
    parameter = Parameter(graph, {**attrs, "initial_node_name": node_id, "name": name}).create_node()
    edge = {"out": 0, "in_attrs": ["in"], "out_attrs": ["out"], INFO: names, "data_attrs": [INFO]}
    if data and is_out_port:
        node.out_node(port)[INFO] = names
        node.out_port(port).get_connection().set_source(parameter.out_port(0))
    elif data:
        parameter.out_port(0).connect(node.in_port(port))
        parameter.out_port(0).data.set_shape(shape)
        parameter.out_node(0)[INFO] = names
    elif is_out_port:
        for _, consumer, old in list(graph.out_edges(node_id, data=True)):
            if old["out"] == port:
                graph.add_edge(parameter.id, consumer, **{**old, **edge})
    else:
        graph.add_edge(parameter.id, node_id, **{**edge, "in": port})
    return parameter.id


def add_input_ops(graph: Graph, user_defined_inputs: dict[str, list[Place]] | None, before_infer: bool) -> list[str]:
    """Put Parameters where the user wants inputs; return the ids of the network's inputs.

    `before_infer`: the graph has no data nodes, and a cut point without a shape waits for them; else the data nodes
    give the shapes. Error for a port that does not exist, and if outputs need an input that is not among them.
    """
    _set_is_input(graph, graph.get_nodes_with_attributes(op="Parameter"), False)
    inputs: list[str] = list(graph.get_nodes_with_attributes(op="Parameter")) if user_defined_inputs is None else []
    cut: list[tuple[str, str]] = []
    for id, cut_points in (user_defined_inputs or {}).items():
        is_parameter = Node(graph, id).op == "Parameter"
        for cut_point in cut_points:
            if cut_point.get("added") or (before_infer and not is_parameter and cut_point.get("shape") is None):
                continue
            inputs.append(
                _declared(graph, id, cut_point) if is_parameter else _cut(graph, id, cut_point, before_infer, cut)
            )
            cut_point["added"] = True
    graph.remove_edges_from(cut)
    if inputs:
        _set_is_input(graph, inputs, True)
        seen: set[str] = set()
        for output in graph.get_nodes_with_attributes(op="Result"):
            reverse_dfs(graph, output, check_input, seen)
    return inputs


def check_input(graph: Graph, node_name: str) -> None:
    """Error for a Parameter that is no input of the network."""
    node: Any = Node(graph, node_name)
    if node.kind == "op" and node.op == "Parameter" and not graph.in_edges(node_name) and not node["is_input"]:
        rule = "--input: outputs need {}, too: name it, or cut the network at another place"
        raise Error(rule, node.soft_get("name", node_name))


def _set_is_input(graph: Graph, ids: Iterable[str], is_input: bool) -> None:
    for id in ids:
        graph.nodes[id]["is_input"] = is_input


def _declared(graph: Graph, id: str, cut_point: Place) -> str:
    """Give a Parameter the shape and the element type that the user wants; return its id."""
    node = Node(graph, id)
    if cut_point.get("in") is not None:
        raise Error("Parameter node {!r} doesn't have input port, but input port {} was provided", id, cut_point["in"])
    if cut_point.get("shape") is not None:
        node["shape"], node["user_shape"] = _shape(cut_point["shape"]), cut_point["shape"]
    if cut_point.get("data_type") is not None:
        node["data_type"] = cut_point["data_type"]
    name = str(node.soft_get("name"))
    if not graph.has_tensor_name(name):
        for _, _, edge in graph.out_edges(id, data=True):
            edge[INFO] = [*edge.get(INFO, []), (name, name)]
    return id


def _cut(graph: Graph, id: str, cut_point: Place, before_infer: bool, cut: list[tuple[str, str]]) -> str:
    """Add a Parameter at a port of a node, and the edges that it replaces to `cut`; return its id."""
    node: Any = Node(graph, id)
    side = "out" if "out" in cut_point else "in"
    ports, port = (node.out_nodes() if side == "out" else node.in_nodes()), cut_point.get(side)
    if port is None and (side == "out" or (before_infer and len(ports) > 1)):
        raise Error("{}: an input of the network names a port of a node with several, got none", id)
    port = 0 if port is None else port
    if port not in ports:
        what = "Output" if side == "out" else "Input"
        raise Error("{} port index {} is out of number of available ports for node {!r}", what, port, id)
    edges: list[Any] = list((graph.out_edges if side == "out" else graph.in_edges)(id, data=True))
    cut += [(source, target) for source, target, edge in edges if edge.get(side) == port]
    is_out = side == "out"
    if before_infer:
        shape, shape_text = _shape(cut_point["shape"]), cut_point["shape"]
        return add_input_op(graph, id, port, False, shape, shape_text, cut_point.get("data_type"), is_out)
    data = ports[port]
    if data.soft_get("shape", None) is None:
        raise Error("Shape for tensor {!r} is not defined. Can not proceed.", data.soft_get("name"))
    return add_input_op(graph, id, port, True, data.shape.copy(), None, data.soft_get("data_type", None), is_out)


def _shape(dims: Iterable[Any]) -> Any:
    """Return a shape of numbers or of OpenVINO's dimensions; one that is not known is masked."""
    sizes = [(dim.get_min_length() if dim.is_static else -1) if hasattr(dim, "is_static") else dim for dim in dims]
    return shape_array([size if size >= 0 else dynamic_dimension_value for size in sizes])


def create_tensor_nodes(graph: Graph) -> Graph:
    """Put a data node after each output that is read; return the graph, with operations only before.

    The edges' lists `out_attrs`, `in_attrs` and `data_attrs` name the attributes that go to the edge into the data
    node, to the one out of it, and to the data node itself.
    """
    for id in list(graph.nodes()):
        graph.nodes[id]["kind"] = "op"
        if graph.nodes[id]["op"] != "Result":
            _split(graph, id)
    return graph


def _split(graph: Graph, id: str) -> None:
    name = str(Node(graph, id).soft_get("name", id))
    edges = list(graph.out_edges(id, data=True, keys=True))
    data_nodes: dict[Any, str] = {}
    for _, target, key, edge in edges:
        idx = edge["out"]
        if idx not in data_nodes:
            data_nodes[idx] = data = graph.unique_id(f"{name}/Output_{idx}/Data_")
            attrs = {"name": data, "kind": "data", "shape": None, "value": None, "data_type": None, "infer": None}
            graph.add_node(data, **with_properties({**attrs, **get_specific_edge_attrs(edge, "data_attrs")}))
            graph.add_edge(id, data, **get_specific_edge_attrs(edge, "out_attrs"))
        graph.remove_edge(id, target, key=key)
        graph.add_edge(data_nodes[idx], target, **get_specific_edge_attrs(edge, "in_attrs"))


def get_specific_edge_attrs(
    attrs: dict[str, Any], attrs_type: str, additional_attrs: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Return the attributes of an edge that its list `attrs_type` names, and the additional ones."""
    return {**{k: attrs[k] for k in attrs.get(attrs_type, []) if k in attrs}, **(additional_attrs or {})}
