"""Makes Model Optimizer's graph of the compiler's.

Each node keeps a record of the one that it was made from; constants are shared, bodies become graphs in attributes.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from typing import Any

from aot.ir.graph import Graph as IrGraph
from aot.ir.graph import Node as IrNode
from aot.ir.graph import OutPort
from aot.ir.op import Foreign, RegionOp
from aot.ir.types import numpy_dtype
from aot.mo.bridge.bodies import records_of, without_maps
from aot.mo.bridge.extension import Extension
from aot.mo.bridge.names import op_name
from aot.mo.bridge.node_records import KEPT, NodeRecord
from aot.mo.bridge.shown_windows import show_windows
from aot.mo.bridge.values import attributes_of, shape_of, value_of
from aot.mo.extracted.messages import messages_of
from aot.mo.extracted.nodes import extracted
from aot.mo.graph.data import add_data_node, with_properties
from aot.mo.graph.graph import Graph, Node
from aot.mo.graph.tensor_names import INFO
from aot.mo.ops.const import Const
from aot.mo.ops.parameter import Parameter
from aot.mo.ops.registered import REGISTERED
from aot.mo.partial_infer.by_definition import infer_by_definition, infer_types_by_definition, masked
from aot.mo.utils.runtime_info import RTInfo
from aot.opset.control.infrastructure import Constant
from aot.opset.control.infrastructure import Parameter as ParameterOp
from aot.runtime.errors import AotError

Describe = Callable[[IrNode], Any]
BODIES = {"then": "then_graph", "else": "else_graph"}  # regions that are attributes of other names
IR_VERSION = 11
LAYOUTS = {"tf": "NHWC", "tflite": "NHWC"}  # order of dimensions of the data that networks of a framework have


def exported(
    graph: IrGraph,
    stage: str = "front",
    *,
    framework: str = "onnx",
    pb: Describe | None = None,
    cli: Any = None,
    layout: str | None = None,
) -> Graph:
    """Return Model Optimizer's graph of a graph.

    `stage`: front, with edges between operations, or middle or back, with data nodes; `pb`: description of a foreign
    node in its framework, which becomes attribute `pb`; `cli`: the options, `graph.graph["cmd_params"]`; `layout`: of
    the data, None for that of the framework.
    """
    mo_graph = Graph()
    options = Namespace(static_shape=False, data_type="float", framework=framework) if cli is None else cli
    mo_graph.graph.update(
        name=graph.name,
        layout=LAYOUTS.get(framework, "NCHW") if layout is None else layout,
        fw=framework,
        ir_version=IR_VERSION,
        cmd_params=options,
        feature_dim=1,
    )
    mo_graph.stage = stage
    work = _Export(mo_graph, stage, framework, pb, options)
    nodes = graph.order()
    for node in nodes:
        work.add(node)
    for node in nodes:
        work.connect(node)
    if stage == "middle":
        show_windows(mo_graph)
    return mo_graph


class _Export:
    def __init__(self, graph: Graph, stage: str, framework: str, pb: Describe | None, cli: Any) -> None:
        self.graph, self.stage, self.framework, self.pb, self.cli = graph, stage, framework, pb, cli
        self.ids: dict[int, str] = {}
        self.data: dict[OutPort, str] = {}

    def add(self, node: IrNode) -> None:
        """Add the counterpart of a node, without edges."""
        id = self.graph.unique_id(node.name)
        self.ids[node.id] = id
        attrs = _attributes(node)
        bodies = {name: self._body(body) for name, body in node.regions.items()}
        if bodies:
            attrs |= {BODIES.get(name, name): body for name, body in bodies.items()}
            attrs |= {"sub_graphs": [BODIES.get(name, name) for name in bodies], **records_of(node, bodies)}
        if isinstance(node.op, Foreign) and self.pb is not None:
            attrs["pb"] = self.pb(node)
            if self.framework == "caffe":
                attrs["model_pb"] = messages_of("caffe").weights_message(node)
        record = NodeRecord(node, {k: v for k, v in attrs.items() if k not in ("pb", "model_pb")})
        outputs = 0 if node.type == "Result" else len(node.out_ports())
        inputs = max(len(node.in_ports()), attrs.get("in_ports_count") or 0)
        properties: dict[str, Any] = {
            "kind": "op",
            "name": node.name,
            "rt_info": RTInfo(),
            KEPT: record,
            **_functions(node),
            **attrs,
            "_in_ports": {i: {} for i in range(inputs)},
            "_out_ports": {i: {} for i in range(outputs)},
        }
        self.graph.add_node(id, **with_properties(properties))

    def _body(self, body: IrGraph) -> Graph:
        layout: str = self.graph.graph["layout"]
        return exported(body, self.stage, framework=self.framework, pb=self.pb, cli=self.cli, layout=layout)

    def connect(self, node: IrNode) -> None:
        """Add the edges into the counterpart of a node."""
        target = Node(self.graph, self.ids[node.id])
        for idx, port in node.in_ports().items():
            source = port.source
            if source is None:
                continue
            if self.stage == "front":
                producer = Node(self.graph, self.ids[source.node.id])
                info = _info(source)
                self.graph.create_edge(producer, target, source.idx, idx, {INFO: info} if info else {})
            else:
                self.graph.add_edge(self._data(source), target.id, **{"in": idx})
        for port in node.out_ports().values() if self.stage != "front" and node.type != "Result" else ():
            self._data(port)

    def _data(self, port: OutPort) -> str:
        """Return the id of the data node of an output."""
        if port not in self.data:
            producer = Node(self.graph, self.ids[port.node.id])
            attrs = _data_attributes(port)
            self.data[port] = add_data_node(self.graph, f"{producer.name}/Output_{port.idx}/Data_", attrs)
            self.graph.add_edge(producer.id, self.data[port], out=port.idx)
            if "data_type" in attrs:
                producer.out_port(port.idx).set_data_type(attrs["data_type"], override=True)
        return self.data[port]


def _info(port: OutPort) -> list[tuple[str, str]]:
    return [(port.node.name, name) for name in port.names]


def _data_attributes(port: OutPort) -> dict[str, Any]:
    """Return shape, value, element type and names of an output, as far as they are known."""
    attrs: dict[str, Any] = {INFO: _info(port)} if port.names else {}
    try:
        type_, value = port.type, port.node.data if port.node.data is not None else port.value
    except AotError:  # a foreign operation has no types
        return attrs
    attrs |= {"shape": shape_of(type_.dims), "data_type": numpy_dtype(type_.dtype).type}
    return attrs if value is None else attrs | {"value": masked(value, type_.dtype)}


def _attributes(node: IrNode) -> dict[str, Any]:
    """Return the attributes of a node's operation."""
    op = node.op
    if isinstance(op, Extension):
        return dict(op.attrs)
    name = op_name(op)
    if isinstance(op, Foreign):
        library = REGISTERED.get(name)
        row = None if library is None else getattr(library, "row", None)
        known: dict[str, Any] = {} if row is None else {"type": row.type, "version": row.version}
        if row is not None and row.counts[0] is not None:
            known["in_ports_count"] = max(row.counts[0], len(node.in_ports()))
        own = {k: value_of(v) for k, v in op.attrs}
        return {**own, "op": name, **known, **extracted(op, len(node.out_ports()))}
    own = without_maps(attributes_of(op)) if isinstance(op, RegionOp) else attributes_of(op)
    attributes = {"op": name, "type": _spelled(op.xml_type), "version": op.opset or "internal", **own}
    if isinstance(op, Constant):
        assert node.data is not None, f"{node.name}: a constant has data"
        value = node.data.reshape(-1) if _is_blob(node) else node.data
        return {**attributes, "value": value, "shape": shape_of(value.shape), "data_type": value.dtype}
    if isinstance(op, ParameterOp):
        kind = numpy_dtype(op.element_type).type
        return {**attributes, "shape": shape_of(op.shape), "data_type": kind, "is_input": True}
    return attributes


def _is_blob(node: IrNode) -> bool:
    """True for a blob of a layer of Caffe, which is a vector in the front phase."""
    consumers = (consumer.node.op for consumer in node.out_port(0).get_destinations())
    return any(isinstance(op, Foreign) and op.dialect == "caffe" for op in consumers)


def _spelled(type_: str) -> str:
    return "Const" if type_ == "Constant" else type_


def _functions(node: IrNode) -> dict[str, Any]:
    """Return the functions of inference of a node's counterpart."""
    if isinstance(node.op, Constant):
        return {"infer": Const.infer, "type_infer": Const.type_infer}
    if isinstance(node.op, ParameterOp):
        return {"infer": Parameter.infer, "type_infer": Parameter.type_infer, "reverse_infer": Parameter.reverse_infer}
    if node.type == "Result" or isinstance(node.op, Foreign | RegionOp):
        return {"infer": _unchanged}
    return {"infer": infer_by_definition, "type_infer": infer_types_by_definition}


def _unchanged(node: Node) -> None:
    """Leave shapes and values as they are: the operation's body, or its framework, says them."""
