"""Connection: an output and the inputs that read it.

`attributes_save_mode` says whose tensor names a connection has after a change: those of the new source (`source`),
those that its destinations had (`dest`), or both (`merge`, which is the default). A Parameter keeps its names: the
default is `source` where one is replaced.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any, NamedTuple

from aot.mo.graph.tensor_names import INFO
from aot.mo.utils.error import Error

Attrs = dict[str, Any]
Graph = Any  # of modules above this one
Node = Any
Port = Any


class _Data(NamedTuple):
    get_value: Callable[[], Any]
    get_shape: Callable[[], Any]


class Connection:
    """Edges from one output port, the source, to input ports, the destinations."""

    def __init__(self, graph: Graph, source: Port | None, destinations: list[Port], control_flow: bool = False) -> None:
        self.graph, self.source, self.destinations, self.control_flow = graph, source, destinations, control_flow
        self.data = _Data(lambda: self._of_data("value"), lambda: self._of_data("shape"))

    def _of_data(self, attribute: str) -> Any:
        if self.graph.stage == "front":
            return None
        assert self.source is not None, "a connection without a source has no data"
        return self.source.node.out_node(self.source.idx, control_flow=self.control_flow)[attribute]

    def get_source(self) -> Port | None:
        return self.source

    def get_destination(self) -> Port | None:
        """Return the destination, None without one; Error if there are several."""
        if len(self.destinations or ()) > 1:
            raise Error("Connection has more than one destination: {}", len(self.destinations))
        return self.destinations[0] if self.destinations else None

    def get_destinations(self) -> list[Port]:
        return self.destinations

    def set_source(self, port: Port, attributes_save_mode: str | None = None) -> None:
        """Make all destinations read the output `port`."""
        self._check(port, "out", "set_source")
        mode = attributes_save_mode or self._default_mode()
        if self.graph.stage == "front":
            self._set_source_in_front(port, mode)
            return
        data = port.create_data_if_necessary()
        old = None if self.source is None else self.source.node.out_nodes().get(self.source.idx)
        attrs: Attrs = {} if old is None else _copied(old.attrs())
        if old is not None and mode != "source":
            old.attrs().pop(INFO, None)
        for key, value in attrs.items():
            if key != INFO:
                data[key] = value
        _set_names(data.attrs(), _names(mode, data.attrs(), attrs))
        for destination in self.destinations:
            edge, u, v, key = destination.get_in_edge_attrs(data=True)
            if u is None:
                self.graph.add_edge(data.id, destination.node.id, **{"in": destination.idx})
            else:
                self.graph.remove_edge(u, v, key=key)
                self.graph.add_edge(data.id, v, **edge)

    def _set_source_in_front(self, port: Port, mode: str) -> None:
        attributes: list[Attrs] = [d.get_in_edge_attrs() or {} for d in port.get_destinations()]
        names: list[Any] = list(dict.fromkeys(_frozen(pair) for edge in attributes for pair in _info(edge)))
        attrs: Attrs = {INFO: names} if names else {}
        for destination in self.destinations:
            edge, u, v, key = destination.get_in_edge_attrs(data=True)
            if u is None:
                kept = Attrs() if mode == "dest" else attrs
                self.graph.create_edge(port.node, destination.node, port.idx, destination.idx, edge_attrs=kept)
            else:
                edge["out"] = port.idx
                _set_names(edge, _names(mode, attrs, edge))
                self.graph.remove_edge(u, v, key=key)
                self.graph.add_edge(port.node.id, v, **edge)

    def set_destination(self, port: Port, attributes_save_mode: str | None = None) -> None:
        """Make the input `port` read the source, in place of the destination; there must be one at most."""
        if len(self.destinations or ()) > 1:
            raise Error("set_destination: a connection with one destination at most, got {}", len(self.destinations))
        self._check(port, "in", "set_destination")
        mode = attributes_save_mode or self._default_mode()
        if self.source is not None and self.graph.stage == "front":
            old, edge = self._cut(), Attrs()
            _set_names(edge, _names(mode, old, port.get_in_edge_attrs() or {}))
            self.graph.create_edge(self.source.node, port.node, self.source.idx, port.idx, edge_attrs=edge)
        elif self.source is not None:
            data = self.source.create_data_if_necessary()
            edge = {**self._cut(), "in": port.idx}
            other = port.node.in_nodes().get(port.idx)
            _set_names(data.attrs(), _names(mode, data.attrs(), {} if other is None else other.attrs()))
            self.graph.add_edge(data.id, port.node.id, **edge)
        self.destinations = [port]

    def add_destination(self, port: Port) -> None:
        """Make the input `port` read the source, too."""
        if self.control_flow is True:
            raise Error("Cannot operate with connection with control_flow=True")
        if self.source is None:
            raise Error("Can not add destination for connection without source port!")
        self._check(port, "in", "add_destination")
        if self.graph.stage == "front":
            self.graph.create_edge(self.source.node, port.node, out_port=self.source.idx, in_port=port.idx)
        else:
            data = self.source.create_data_if_necessary()
            self.graph.add_edge(data.id, port.node.id, **{"in": port.idx})
        self.destinations.append(port)

    def remove(self) -> None:
        """Remove all edges; the connection has no ends afterwards."""
        for port in self.destinations or ():
            port.disconnect()
        self.source = None
        self.destinations = []

    def insert_node(self, new_node: Node, attributes_save_mode: str = "merge") -> None:
        """Put a node with one output between source and destinations; its input 0 reads the source."""
        assert len(new_node.out_ports()) == 1, f"The node {new_node.soft_get('name')} has several output ports"
        source = self.get_source()
        self.set_source(new_node.out_port(0), attributes_save_mode)
        if source is None:
            raise Error("insert_node: a connection with a source, got one without")
        source.connect(new_node.in_port(0))

    def _check(self, port: Port, side: str, what: str) -> None:
        if port.type != side:
            raise Error("Wrong port type in {} method. Should be '{}' but given '{}'", what, side, port.type)
        if self.control_flow is True:
            raise Error("Cannot operate with connection with control_flow=True")

    def _default_mode(self) -> str:
        is_parameter = self.source is not None and self.source.node.soft_get("type") == "Parameter"
        return "source" if is_parameter else "merge"

    def _cut(self) -> Attrs:
        """Disconnect the destination; return the attributes that its edge had."""
        for destination in self.destinations or ():
            edge = destination.get_in_edge_attrs()
            if edge is None:
                name = destination.node.soft_get("name", destination.node.id)
                raise Error("Broken Connection object! Destination (node:{}) is not connected to source.", name)
            destination.disconnect()
            return edge
        return {}


def _names(mode: str, source: Attrs, destination: Attrs) -> list[Any]:
    """Return the names to be kept."""
    if mode == "merge":
        return [*_info(source), *_info(destination)]
    return _info(source if mode == "source" else destination)


def _info(attrs: Attrs) -> list[Any]:
    return attrs.get(INFO) or []


def _set_names(attrs: Attrs, names: list[Any]) -> None:
    if names:
        attrs[INFO] = names
    else:
        attrs.pop(INFO, None)


def _frozen(pair: Any) -> Any:
    return tuple(pair)


def _copied(attrs: Attrs) -> Attrs:
    """Return a copy of a data node's attributes; the value is shared, for it may be large and is never written."""
    return {k: v if k == "value" else deepcopy(v) for k, v in attrs.items()}
