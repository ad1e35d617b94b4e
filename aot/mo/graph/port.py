"""Port: an input or an output of an operation."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np

from aot.mo.graph.connection import Connection
from aot.mo.graph.data import Data, data_node, make_data_node
from aot.mo.graph.tensor_names import TensorNames
from aot.mo.utils.arrays import is_a
from aot.mo.utils.error import Error

Node = Any  # of a module above this one
Number = int | str


class Port(TensorNames):
    """Input or output `idx` of a node. Attributes that it does not have itself are read from its edge."""

    def __init__(self, node: Node, idx: Number, type: str, **kwargs: Any) -> None:
        if type not in ("in", "out"):
            raise Error("Inappropriate port type: {}", type)
        vars(self).update(node=node, idx=idx, type=type, control_flow=False)
        vars(self).update(kwargs)
        vars(self)["data"] = Data(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Port) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[Any, ...]:
        return id(self.node.graph), self.node.id, self.type, self.idx

    def __deepcopy__(self, memo: dict[int, Any]) -> Port:
        kept = ("node", "data", "idx", "type", "control_flow")
        return Port(
            self.node,
            self.idx,
            self.type,
            control_flow=self.control_flow,
            **{k: deepcopy(v, memo) for k, v in vars(self).items() if k not in kept},
        )

    def __setattr__(self, key: str, value: Any) -> None:
        self._edge()[key] = value

    def __getattr__(self, item: str) -> Any:
        if item.startswith("__") or "node" not in vars(self):
            raise AttributeError(item)
        result = self._edge().get(item)
        if result is None:
            name = self.node.soft_get("name", self.node.id)
            raise Error("Edge from {}_port {} at node {} has no attribute {}", self.type, self.idx, name, item)
        return result

    def _edge(self) -> dict[str, Any]:
        find = self.node.in_edge if self.type == "in" else self.node.out_edge
        return find(self.idx, control_flow=self.control_flow)

    def disconnected(self) -> bool:
        return self.get_source() is None if self.type == "in" else not self.get_destinations()

    def get_source(self) -> Port | None:
        """Return the output that this input reads; Error if there are several."""
        assert self.type != "out", f"Can't get source for output port at {self.node.soft_get('name')} node"
        if self.node.graph.stage == "front":
            producers = [(n, d) for n, d in self.node.get_inputs(None, self.control_flow) if d["in"] == self.idx]
            if not producers:
                return None
        else:
            data = data_node(self)
            if data is None:
                return None
            producers = data.get_inputs(control_flow=self.control_flow)
        if len(producers) == 1:
            id, edge = producers[0]
            return self.node.other(id).out_port(edge["out"], control_flow=self.control_flow)
        if self.node.graph.strict_mode:
            rule = 'Something bad has happened with graph! Data node "{}" has {} producers'
            raise Error(rule, self.node.id, len(producers))
        return None

    def get_destination(self) -> Port | None:
        """Return the input that reads this output, None if there is none; Error if there are several."""
        ports = self.get_destinations()
        if len(ports) > 1:
            rule = "The number of destinations for {} node at {} port is {}"
            raise Error(rule, self.node.soft_get("name"), self.idx, len(ports))
        return ports[0] if ports else None

    def get_destinations(self) -> list[Port]:
        """Return the inputs that read this output."""
        assert self.type != "in", f"Can't get destinations for input port at {self.node.soft_get('name')} node"
        if self.node.graph.stage == "front":
            consumers: list[Any] = self.node.get_outputs({"out": self.idx}, self.control_flow)
        else:
            data = data_node(self)
            consumers = [] if data is None else data.get_outputs(control_flow=self.control_flow)
        return [self.node.other(n).in_port(d["in"], control_flow=self.control_flow) for n, d in consumers]

    def get_connection(self) -> Connection:
        """Return the connection that the port is an end of; one without edges if it is not connected."""
        if self.type == "in":
            return Connection(self.node.graph, self.get_source(), [self], self.control_flow)
        return Connection(self.node.graph, self, self.get_destinations(), self.control_flow)

    def connect(self, port: Port) -> None:
        """Make an input read the output `port` in place of another; make the input `port` read this output."""
        if self.type == "in":
            self.get_connection().set_source(port)
        else:
            self.get_connection().add_destination(port)

    def disconnect(self) -> None:
        """Remove the edges of the port."""
        if self.type == "out":
            for port in self.get_destinations():
                port._remove_edge(self)
        elif self.get_source() is not None:
            self._remove_edge(None)

    def _remove_edge(self, source: Port | None) -> None:
        """Remove the edge into this input; in the front phase the one from `source`, if there are several."""
        for u, v, key, edge in list(self.node.graph.in_edges(self.node.id, data=True, keys=True)):
            if edge.get("in") != self.idx:
                continue
            if source is None or u != source.node.id or edge.get("out") == source.idx:
                self.node.graph.remove_edge(u, v, key=key)
                return

    def get_in_edge_attrs(self, data: bool = False) -> Any:
        """Return the attributes of the edge into this input, None without one; with `data`, its ends and key, too."""
        assert self.type == "in"
        for u, v, key, edge in self.node.graph.in_edges(self.node.id, data=True, keys=True):
            if edge["in"] == self.idx:
                return (edge, u, v, key) if data else edge
        return (None, None, None, None) if data else None

    def create_data_if_necessary(self) -> Node:
        """Return the data node of this output; one is made if there is none, and the node is to be inferred then."""
        if self.node.graph.stage == "front":
            raise Error("create_data_if_necessary: the front phase has no data nodes")
        if self.type == "in":
            raise Error("create_data_if_necessary: an output, got an input")
        data = data_node(self)
        if data is None:
            data = make_data_node(self.node, self.idx)
            self.node["need_shape_inference"] = True
        return data

    _create_data_if_necessary = create_data_if_necessary

    def get_data_type(self) -> Any:
        """Return the NumPy type of the elements; Error if it is not known."""
        data_type = self._get_data_type()
        if data_type is None:
            name = self.node.soft_get("name")
            raise Error("The data type for {} port {} of node {} is not defined", self.type, self.idx, name)
        return data_type

    def is_data_type_defined(self) -> bool:
        return self._get_data_type() is not None

    def is_declared(self) -> bool:
        """True if the node that gives the tensor says its element type, whatever its value is."""
        source = self if self.type == "out" else self._lone_source()
        return source is not None and source.idx in source.node.soft_get("_out_port_data_type", {})

    def set_data_type(self, data_type: Any, override: bool = False) -> None:
        """Set the NumPy type of an output's elements; Error if it has another one and `override` is not set."""
        assert self.type == "out", "The method can be called for output ports only"
        if not self.node.has_valid("_out_port_data_type"):
            self.node["_out_port_data_type"] = {}
        types = self.node["_out_port_data_type"]
        if types.get(self.idx, data_type) != data_type and not override:
            rule = "Trying to override data type for output port {} of operation {}: from {} to {}"
            raise Error(rule, self.idx, self.node.soft_get("name"), types[self.idx], data_type)
        types[self.idx] = data_type

    def _get_data_type(self) -> Any:
        value = self.data.get_attr("value")
        own = getattr(value, "dtype", None) if not is_a(value, (list, tuple, int, float)) else np.asarray(value).dtype
        if self.type == "out":
            types: dict[Any, Any] = self.node.soft_get("_out_port_data_type", {})
            dtype = types.get(self.idx)
        else:
            dtype = self._source_data_type()
        return own if dtype is None else dtype

    def _source_data_type(self) -> Any:
        source = self._lone_source()
        return None if source is None else source._get_data_type()

    def _lone_source(self) -> Port | None:
        """Return the output that this input reads; None without one, if there are several, and without a port."""
        graph = self.node.graph
        strict, graph.strict_mode = graph.strict_mode, False
        try:
            return self.get_source()
        except Error:
            return None
        finally:
            graph.strict_mode = strict
