"""Brings Model Optimizer's graph back: the compiler's graph is changed where extensions have changed its counterpart.

Nodes that are unchanged stay the same objects, with their origins, bodies and types. A node that an extension has made
gets the operation of its type, version and attribute texts, as a layer of a file does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any

import numpy as np
from networkx import find_cycle

from aot.codegen.dataclass import dataclass
from aot.frontends import DIALECTS
from aot.frontends.conversion.dialect import input_problem
from aot.frontends.openvino.constants import unpack
from aot.ir.graph import Graph as IrGraph
from aot.ir.graph import Node as IrNode
from aot.ir.graph import OutPort
from aot.ir.op import Foreign
from aot.ir.op import Op as Definition
from aot.ir.origin import Origin
from aot.mo.bridge.bodies import REGIONS, with_records
from aot.mo.bridge.extension import Extension
from aot.mo.bridge.internal import UNLIKE_TYPE, Step, appended, steps_of
from aot.mo.bridge.node_records import KEPT, NodeRecord, record_of
from aot.mo.bridge.operation import is_new, operation_of, operation_or_none
from aot.mo.bridge.shown_windows import hide_windows
from aot.mo.bridge.values import dtype_from
from aot.mo.bridge.windows import WINDOWED, Windows, channel_tensors, complete, reads_sizes
from aot.mo.graph.cleaning import add_constant_operations
from aot.mo.graph.graph import Graph, Node, Port
from aot.mo.graph.tensor_names import INFO
from aot.mo.utils.arrays import is_a
from aot.mo.utils.error import Error
from aot.mo.utils.types import PACKED, data_type_str_to_np
from aot.opset.control.infrastructure import Constant
from aot.runtime.abi import DType

ENDS = ("Result", "Assign")  # operations that keep their source


def imported(made: Graph, graph: IrGraph) -> dict[str, IrNode]:
    """Change `graph` into what its counterpart `made` has become; return its nodes by the ids of their counterparts.

    Error for a cycle, for an input that nothing is connected to, and for an operation that no set and no extension has.
    """
    hide_windows(made)
    work = _Import(made, graph)
    work.run()
    return work.owners


@dataclass(slots=True)
class _Wiring:
    """A node, and the sources of its inputs in order."""

    node: Node
    sources: list[Port | None]
    outputs: list[int]  # numbers of the output ports, in order


class _Import:
    def __init__(self, made: Graph, graph: IrGraph) -> None:
        self.made, self.graph = made, graph
        self.ports: dict[tuple[str, int], OutPort] = {}
        self.owners: dict[str, IrNode] = {}  # nodes by the ids of their counterparts
        self.before = {node.id: node.sources() for node in graph.nodes.values()}
        self.origins = {node.name: node.origin for node in graph.nodes.values() if node.origin.layers}
        self.unneeded = _unneeded(graph)  # which stay, as no extension has cut them off

    def run(self) -> None:
        if self.made.stage != "front":
            add_constant_operations(self.made)  # for data nodes with a value that nothing makes
        order = self._order()
        taken: set[int] = set()
        needed = self._needed()
        for node in order:
            wiring = self._wiring(node)
            old = self._old(node, taken)
            if node.id not in needed and not self._is_whole(wiring, old):
                continue
            self._place(wiring, old)
        self._remove_others(set(self.owners.values()))
        self._rename()
        self._name_tensors()

    def _order(self) -> list[Node]:
        try:
            return [n for n in self.made.topological_sort() if n.kind == "op"]
        except Exception as error:
            loop = " -> ".join(str(edge[0]) for edge in find_cycle(self.made))
            raise Error("the graph has a cycle: {}", loop) from error

    def _needed(self) -> set[str]:
        """Return the ids that a Result or an Assign needs, and the inputs of the network."""
        ends = [n.id for n in self.made.get_op_nodes() if n.soft_get("op") in ENDS or n.soft_get("type") in ENDS]
        reached, waiting = set(ends), list(ends)
        while waiting:
            for source, _ in self.made.in_edges(waiting.pop()):
                if source not in reached:
                    reached.add(source)
                    waiting.append(source)
        return reached | set(self.made.get_nodes_with_attributes(op="Parameter"))

    def _wiring(self, node: Node) -> _Wiring:
        numbers = [i for i in node.in_ports() if is_a(i, int)]
        sources = [node.in_port(i).get_source() for i in numbers]
        record = record_of(node)
        least = 0 if record is None or record.is_copy else len(record.node.in_ports())
        while len(sources) > least and sources[-1] is None:
            sources.pop()
        return _Wiring(node, sources, [int(i) for i in node.out_ports() if is_a(i, int)])

    def _old(self, node: Node, taken: set[int]) -> IrNode | None:
        """Return the node that this one was made from, if it is still of that operation and no other one is it."""
        record: NodeRecord | None = record_of(node)
        if record is None or record.is_copy or record.node.id in taken or record.node.graph is not self.graph:
            return None
        taken.add(record.node.id)
        return record.node

    def _is_whole(self, wiring: _Wiring, old: IrNode | None) -> bool:
        """True if a node that nothing needs is as it was, and nothing needed it before."""
        if old is None or old not in self.unneeded or len(wiring.sources) != len(self.before[old.id]):
            return False
        pairs = zip(wiring.sources, self.before[old.id], strict=True)
        return all(self._find(s) is before for s, before in pairs)

    def _find(self, source: Port | None) -> OutPort | None:
        return None if source is None else self.ports.get((source.node.id, int(source.idx)))

    def _place(self, wiring: _Wiring, old: IrNode | None) -> None:
        """Change the old node, or add a new one, and connect it."""
        node = wiring.node
        if node.in_ports() and not any(wiring.sources):
            rule = "{} ({}): an extension has cut off its inputs: connect one of them, or remove the node; got none"
            raise Error(rule, node.soft_get("name", node.id), node.soft_get("op"))
        sources = [self._source(node, s) for s in wiring.sources]
        constants = None if old is not None else self._constants(node, wiring)
        if constants is not None:
            for idx, port in constants.items():
                self.ports[node.id, idx] = port
            self.owners |= {f"{node.id}:{idx}": port.node for idx, port in constants.items()}
            return
        record = record_of(node)
        steps = self._steps(node)
        if steps:
            self._chain(node, wiring, steps, self._origin(sources, node) if record is None else record.node.origin)
            return
        if is_new(node):
            axes = appended(node, len(sources))
            sources += [] if axes is None else [self._constant_port(axes, f"{node.soft_get('name', node.id)}/axes")]
        complete(node)
        op, data = self._operation(node, wiring)
        origin = record.node.origin if record is not None else self._origin(sources, node)
        windows = self._windows(node, op, origin)
        if windows is not None:
            op, sources = windows.inputs(op, sources)
        if old is None:
            count = max(len(wiring.outputs), 1)
            name = str(node.soft_get("name", node.id))
            old = self.graph.add(op, *sources, name=name, origin=origin, outputs=count, data=data)
        else:
            self._update(old, op, data, sources, len(wiring.outputs))
        self._bodies(node, old, record)
        self.owners[node.id] = old
        if record is not None and len(_connected(sources)) < len(_connected(self.before.get(record.node.id, []))):
            _check_inputs(old)
        for position, idx in enumerate(wiring.outputs or [0]):
            if position < len(old.out_ports()):
                port = old.out_port(position)
                self.ports[node.id, idx] = port if windows is None else windows.output(port)

    def _windows(self, node: Node, op: Definition, origin: Origin) -> Windows | None:
        """Return the nodes that an operation on channels needs around it; None for other and for foreign operations."""
        has_channels = node.soft_get("type") in WINDOWED or any(channel_tensors(node)) or reads_sizes(node)
        if isinstance(op, Foreign) or not has_channels:
            return None

        def add(op: Definition, sources: Sequence[OutPort | None], name: str) -> OutPort:
            new_node = self.graph.add(op, *sources, name=name, origin=origin)
            self.owners[f"{name}:{new_node.id}"] = new_node
            return new_node.out_port(0)

        return Windows(node, add, self._constant_port)

    def _origin(self, sources: list[OutPort | None], node: Node) -> Origin:
        """Return the origin of the node whose name a new one has taken; for another name, the origin of a source."""
        name = str(node.soft_get("name", node.id))
        origin = next((s.node.origin for s in sources if s is not None and s.node.origin.layers), None)
        return self.origins.get(name) or origin or Origin((name,), self.graph.file)

    def _steps(self, node: Node) -> list[Step]:
        """Return the operations that a node stands for, if no set has its operation."""
        if self.made.stage != "front" or not is_new(node):
            return []
        internal = node.soft_get("op") in UNLIKE_TYPE or operation_or_none(node) is None
        return steps_of(node) if internal else []

    def _chain(self, node: Node, wiring: _Wiring, steps: list[Step], origin: Origin) -> None:
        """Add the operations that a node stands for."""
        inputs = [self._source(node, s) for s in wiring.sources]
        name, count = str(node.soft_get("name", node.id)), max(len(wiring.outputs), 1)
        for at, step in enumerate(steps):
            is_last = step is steps[-1]
            label = name if is_last else f"{name}/{step.op.kind}"
            inputs += [self._constant_port(c, f"{label}/{i}") for i, c in enumerate(step.constants)]
            new_node = self.graph.add(step.op, *inputs, name=label, origin=origin, outputs=count if is_last else 1)
            self.owners[node.id if is_last else f"{node.id}/{at}"] = new_node
            inputs = [new_node.out_port(0)]
        for port, idx in zip(self.owners[node.id].out_ports().values(), wiring.outputs, strict=False):
            self.ports[node.id, idx] = port

    def _constant_port(self, value: Any, name: str) -> OutPort:
        op, data = _as_constant(value)
        node = self.graph.add(op, name=name, data=data)
        self.owners[f"{name}:{node.id}"] = node
        return node.out_port(0)

    def _source(self, node: Node, source: Port | None) -> OutPort | None:
        port = self._find(source)
        if source is not None and port is None:
            rule = "{}: it reads output {} of {}, which is not there"
            raise Error(rule, node.soft_get("name", node.id), source.idx, source.node.soft_get("name"))
        return port

    def _operation(self, node: Node, wiring: _Wiring) -> tuple[Definition, Any]:
        record = record_of(node)
        grown = record is not None and len(wiring.sources) > len(record.node.in_ports())
        op = operation_or_none(node, by_type=grown)
        if op is None and node.has_valid("infer"):
            attrs = {k: v for k, v in node.attrs().items() if k not in ("_in_ports", "_out_ports", KEPT)}
            facts = self.made.graph["layout"], self.made.graph["fw"]
            op = Extension(node.id, node.soft_get("op"), max(len(wiring.outputs), 1), attrs, *facts)
        if op is None:
            op = operation_of(node)  # which raises the error
        if not isinstance(op, Constant):
            return op, None
        if record is not None and op is record.node.op:
            return op, record.node.data
        op, value = _constant(node)
        if record is None or record.node.data is None:
            return op, value
        if value.shape == record.attrs["value"].shape != record.node.data.shape:
            value = value.reshape(record.node.data.shape)  # a blob, which was shown as a vector
        return op, value

    def _update(self, old: IrNode, op: Definition, data: Any, sources: list[OutPort | None], outputs: int) -> None:
        if op is not old.op:
            old.op = op
        if data is not None and data is not old.data:
            old.data = data
            old.forget_types()
        while len(old.in_ports()) > len(sources):
            old.delete_input_port(len(old.in_ports()) - 1)
        while len(old.in_ports()) < len(sources):
            old.add_input_port()
        for port, source in zip(old.in_ports().values(), sources, strict=True):
            if source is None:
                port.disconnect()
            elif port.source is not source:
                port.connect(source)
        while len(old.out_ports()) < outputs:
            old.add_output_port()

    def _constants(self, node: Node, wiring: _Wiring) -> dict[int, OutPort] | None:
        """Return constants in place of an operation that no set has and whose `infer` has computed its values."""
        if self.made.stage == "front" or record_of(node) is not None or not wiring.outputs:
            return None
        values = {idx: node.out_port(idx).data.get_value() for idx in wiring.outputs}
        if any(v is None for v in values.values()) or operation_or_none(node) is not None:
            return None
        name = str(node.soft_get("name", node.id))
        constants: dict[int, OutPort] = {}
        for idx, value in values.items():
            op, data = _as_constant(np.asarray(value))
            label = name if len(values) == 1 else f"{name}.{idx}"
            constants[idx] = self.graph.add(
                op, name=label, origin=Origin((name,), self.graph.file), data=data
            ).out_port(0)
        return constants

    def _bodies(self, node: Node, new_node: IrNode, record: NodeRecord | None) -> None:
        """Bring the bodies of a node back: into those it had, or into new ones of a node that an extension has made."""
        names: list[str] = node.soft_get("sub_graphs", [])
        if not names:
            return
        own = (
            dict[str, IrGraph]()
            if record is None or record.is_copy or record.node is not new_node
            else record.node.regions
        )
        known = list(record.node.regions) if record is not None else []
        regions = REGIONS.get(type(new_node.op)) or dict(zip(names, known, strict=False))
        owners: dict[str, dict[str, IrNode]] = {}
        for name, region in regions.items():
            label = f"{new_node.name}.{region}"
            body = own.get(region) or IrGraph(name=label, file=self.graph.file, scope=f"{label}.")
            owners[region] = imported(node[name], body)
            if record is not None and region not in own:
                _sort_ends(body, record.node.regions[region], node[name], owners[region])
            new_node.regions[region] = body
        op = with_records(new_node.op, node, new_node.regions, owners)
        if op != new_node.op:
            new_node.op = op
        new_node.forget_types()

    def _remove_others(self, placed: set[IrNode]) -> None:
        gone = [node for node in self.graph.nodes.values() if node not in placed]
        for node in gone:
            for port in node.out_ports().values():
                port.disconnect()
        for node in gone:
            self.graph.remove(node)

    def _rename(self) -> None:
        """Give the nodes the names of their counterparts, where no other node has it."""
        names = {id: attrs.get("name", id) for id, attrs in self.made.nodes(data=True)}
        renames = [(node, str(names[id])) for id, node in self.owners.items() if id in names]
        moving = [(node, name) for node, name in renames if node.name != name]
        fixed = {node.name for node in self.graph.nodes.values()} - {node.name for node, _ in moving}
        for node, name in moving:
            node.name = name if name not in fixed else f"{name}.{node.id}"
            fixed.add(node.name)

    def _name_tensors(self) -> None:
        """Give the tensors the names that edges or data nodes have; a tensor that nothing reads keeps its own."""
        names_by_port: dict[OutPort, list[str]] = {}
        for (id, idx), port in self.ports.items():
            consumers = Node(self.made, id).get_outputs({"out": idx})
            in_front = self.made.stage == "front"
            attributes = [edge if in_front else self.made.nodes[n] for n, edge in consumers]
            if attributes:
                names_by_port[port] = list(
                    dict.fromkeys(name for attrs in attributes for name in _names(attrs.get(INFO) or []))
                )
        for port, names in names_by_port.items():
            if tuple(names) != port.names:
                port.names = tuple(names)
        for node in self.graph.results:
            if node.id not in self.before and not node.out_port(0).names:
                source = node.source(0)
                node.out_port(0).names = source.names or (source.node.name,)


def _connected(sources: Iterable[OutPort | None]) -> list[OutPort]:
    return [source for source in sources if source is not None]


def _check_inputs(node: IrNode) -> None:
    """Error for an operation of a file that needs an input which an extension has cut off."""
    rule = input_problem(node, {dialect.name: dialect for dialect in DIALECTS})
    if rule:
        kind = node.op.kind if isinstance(node.op, Foreign) else node.type
        text = "{} ({}): an extension has cut off an input that it needs: connect it, or remove the node; {}"
        raise Error(text, node.name, kind, rule)


def _sort_ends(body: IrGraph, original: IrGraph, graph: Graph, owners: dict[str, IrNode]) -> None:
    """Give parameters and results of a body that was copied the order of the original's."""
    order = {node.id: i for i, node in enumerate((*original.parameters, *original.results))}
    records = {owner: record_of(Node(graph, id)) for id, owner in owners.items() if id in graph}
    positions = {owner: order.get(r.node.id, len(order)) for owner, r in records.items() if r is not None}
    for ends in (body.parameters, body.results):
        ends.sort(key=lambda node: positions.get(node, len(order)))


def _unneeded(graph: IrGraph) -> set[IrNode]:
    """Return the nodes that no Result, Assign or Parameter needs or is."""
    nodes = {*graph.results, *graph.sinks}
    waiting = list(nodes)
    while waiting:
        for port in waiting.pop().sources():
            if port is not None and port.node not in nodes:
                nodes.add(port.node)
                waiting.append(port.node)
    return set(graph.nodes.values()) - nodes - set(graph.parameters)


def _names(info: Iterable[Any]) -> list[str]:
    return [pair[1] for pair in info if pair is not None and len(pair) >= 2 and pair[1]]


def _constant(node: Node) -> tuple[Constant, Any]:
    value = np.asarray(node.soft_get("value", None))
    wanted = data_type_str_to_np(node.force_type) if node.has_valid("force_type") else None
    if wanted in PACKED.values():
        shape = [int(d) for d in node.force_shape]
        dtype = DType(node.force_type.lower())
        return Constant(dtype), unpack(dtype, value.reshape(-1), prod(shape)).reshape(shape)
    if wanted is not None:
        value = value.astype(wanted)
    if node.has_valid("force_shape"):
        value = value.reshape([int(d) for d in node.force_shape])
    return _as_constant(value)


def _as_constant(value: Any) -> tuple[Constant, Any]:
    from_text = value.astype(object) if value.dtype.kind in "US" else value
    return Constant(dtype_from(from_text.dtype)), from_text
