"""Node: an operation or a tensor of Model Optimizer's graph, with ports."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from copy import deepcopy
from typing import Any

from aot.mo.graph.edits import Edits
from aot.mo.graph.neighbours import Port as Number
from aot.mo.graph.neighbours import by_port
from aot.mo.graph.port import Port
from aot.mo.utils.error import Error

_PORTS = {"in": "_in_ports", "out": "_out_ports"}
_COUNTS = {"in": "in_ports_count", "out": "out_ports_count"}
_SIDES = {"in": "Input", "out": "Output"}


class Node(Edits):
    """A node of a graph; nodes with the same id are equal."""

    def in_port(self, idx: Number | None = None, control_flow: bool = False) -> Port:
        return self._port("in", idx, control_flow)

    def out_port(self, idx: Number | None = None, control_flow: bool = False) -> Port:
        return self._port("out", idx, control_flow)

    def in_ports(self, control_flow: bool = False) -> OrderedDict[Number, Port]:
        """Return the inputs by number; with `control_flow`, inputs of control flow, too."""
        return self._ports("in", control_flow)

    def out_ports(self, control_flow: bool = False) -> OrderedDict[Number, Port]:
        """Return the outputs by number; with `control_flow`, outputs of control flow, too."""
        return self._ports("out", control_flow)

    def has_port(self, port_type: str, idx: Number, control_flow: bool = False) -> bool:
        assert port_type in _PORTS, f"a port is in or out, got {port_type}"
        return self.has_valid(_PORTS[port_type]) and idx in self._ports(port_type, control_flow)

    def is_in_port_connected(self, idx: Number, control_flow: bool = False) -> bool:
        return self.has_port("in", idx, control_flow) and not self.in_port(idx, control_flow).disconnected()

    def is_out_port_connected(self, idx: Number, control_flow: bool = False) -> bool:
        return self.has_port("out", idx, control_flow) and not self.out_port(idx, control_flow).disconnected()

    def add_input_port(self, idx: Number, skip_if_exist: bool = False, **kwargs: Any) -> None:
        """Add input `idx`; Error if it is there and `skip_if_exist` is not set."""
        self._add("in", idx, skip_if_exist, kwargs)

    def add_output_port(self, idx: Number, skip_if_exist: bool = False, **kwargs: Any) -> None:
        """Add output `idx`; Error if it is there and `skip_if_exist` is not set."""
        self._add("out", idx, skip_if_exist, kwargs)

    def add_sequence_of_ports(self, type: str, rng: Iterable[int]) -> None:
        """Add the ports with the numbers in `rng` that are not there; `type` is in or out."""
        assert type in _PORTS, f"a port is in or out, got {type}"
        for idx in rng:
            self._add(type, idx, True, {})

    def delete_input_port(self, idx: Number, skip_if_absent: bool = False) -> None:
        """Disconnect and remove input `idx`; the others keep their numbers."""
        self._delete("in", idx, skip_if_absent)

    def delete_input_ports(self, idx_set: Iterable[Number], skip_if_absent: bool = False) -> None:
        for idx in list(idx_set):
            self._delete("in", idx, skip_if_absent)

    def delete_output_port(self, idx: Number, skip_if_absent: bool = False) -> None:
        """Disconnect and remove output `idx`; the others keep their numbers."""
        self._delete("out", idx, skip_if_absent)

    def update_node(self) -> None:
        """Add the ports that the attributes `in_ports_count` and `out_ports_count` tell."""
        for side, ports in _PORTS.items():
            if not self.has_valid(ports):
                self[ports] = {}
            for idx in range(self.attrs().get(_COUNTS[side]) or 0):
                self[ports].setdefault(idx, {})

    def get_opset(self) -> str:
        """Return the name of the operation set: attribute `version`, `extension` without one."""
        return self.soft_get("version", "extension")

    def copy_node(self, new_attrs: dict[str, Any] | None = None, dst_graph: Any = None) -> Node:
        """Add a node with a copy of the attributes, changed by `new_attrs`, to `dst_graph` or to this graph."""
        target = self.graph if dst_graph is None else dst_graph
        attrs = deepcopy(self.attrs())
        id = target.unique_id(attrs["name"]) if "name" in attrs else target.unique_id()
        target.add_node(id, **{**attrs, "name": id, **(new_attrs or {})})
        return Node(target, id)

    def _table(self, side: str) -> dict[Number, dict[str, Any]]:
        if not self.has_valid(_PORTS[side]):
            shown = self.soft_get("op"), self.soft_get("name", self.id)
            raise Error("Operation {} {} has no {} attribute", *shown, _PORTS[side])
        return self[_PORTS[side]]

    def _port(self, side: str, idx: Number | None, control_flow: bool) -> Port:
        table = self._table(side)
        name = self.soft_get("name", self.id)
        if idx not in table:
            raise Error("{} port with index {} is not in node {}", _SIDES[side], idx, name)
        if table[idx].get("control_flow") and not control_flow:
            raise Error("Attempt to access control flow port when it's prohibited for node {}", name)
        return Port(self, idx, side, **table[idx])

    def _ports(self, side: str, control_flow: bool) -> OrderedDict[Number, Port]:
        shown = [i for i, attrs in self._table(side).items() if control_flow or not attrs.get("control_flow")]
        return by_port({i: self._port(side, i, control_flow) for i in shown})

    def _add(self, side: str, idx: Number, skip_if_exist: bool, attrs: dict[str, Any]) -> None:
        if not self.has_valid(_PORTS[side]):
            self[_PORTS[side]] = {}
        if not skip_if_exist and idx in self._ports(side, attrs.get("control_flow") or False):
            name = self.soft_get("name", self.id)
            raise Error("{} port with {} index already exists for {} node.", _SIDES[side], idx, name)
        self[_PORTS[side]][idx] = attrs

    def _delete(self, side: str, idx: Number, skip_if_absent: bool) -> None:
        name = self.soft_get("name")
        if not self.has_valid(_PORTS[side]):
            raise Error("Cannot remove port {} of node {}: it has no {} attribute", idx, name, _PORTS[side])
        if idx not in self._ports(side, False):
            if skip_if_absent:
                return
            raise Error("{} port with index {} doesn't exist in node {}.", _SIDES[side], idx, name)
        port = self._port(side, idx, False)
        if not port.disconnected():
            port.disconnect()
        del self[_PORTS[side]][idx]
        self[_COUNTS[side]] = len(self[_PORTS[side]])


__all__ = ["Node", "Port"]
