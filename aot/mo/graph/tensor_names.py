"""Names of the tensors of output ports: attribute `fw_tensor_debug_info` of an edge or of a data node.

It is a list of pairs (operation, tensor) with the names that the framework used. In the front phase each edge has a
list of its own, and the one of the last edge counts.
"""

from __future__ import annotations

from typing import Any

INFO = "fw_tensor_debug_info"


class TensorNames:
    """The names of an output port."""

    node: Any
    idx: int | str
    type: str
    control_flow: bool
    data: Any

    def get_tensor_names(self, port_renumber: bool = False) -> list[str]:
        """Return the names, sorted; a comma in a name is escaped, for lists of names are joined by commas.

        `port_renumber`: outputs are numbered from 0, while data nodes are numbered from the number of inputs on.
        """
        info = self.get_tensor_debug_info(port_renumber)
        names: list[Any] = [item[1] for item in info if item is not None and len(item) >= 2]
        return sorted(name.replace(",", "\\,") for name in names if name)

    def add_tensor_names(self, tensor_names: list[str], port_renumber: bool = False) -> None:
        for name in tensor_names:
            assert isinstance(name, str), "Tensor names elements should be strings."
        if tensor_names:
            op = self.node.soft_get("name", self.node.id)
            info = self.get_tensor_debug_info(port_renumber)
            self.set_tensor_debug_info([*info, *((op, name) for name in tensor_names)], port_renumber)

    def remove_tensor_names(self, port_renumber: bool = False) -> None:
        self.remove_debug_info(port_renumber)

    def get_tensor_debug_info(self, port_renumber: bool = False) -> list[Any]:
        """Return the pairs (operation, tensor)."""
        return list((self._holder(port_renumber) or {}).get(INFO) or [])

    def set_tensor_debug_info(self, tensor_info: list[Any], port_renumber: bool = False) -> None:
        """Set the pairs (operation, tensor); an output that has no edge cannot keep them."""
        holder = self._holder(port_renumber)
        if holder is not None:
            holder[INFO] = tensor_info

    def remove_debug_info(self, port_renumber: bool = False) -> None:
        (self._holder(port_renumber) or {}).pop(INFO, None)

    def get_default_tensor_name(self) -> str | None:
        """Return `NODE:IDX` for an output, None for an input."""
        return None if self.type == "in" else f"{self.node.soft_get('name', self.node.id)}:{self.idx}"

    def _holder(self, renumbered: bool) -> dict[str, Any] | None:
        """Return the attributes of the edge or data node that hold the names."""
        name = self.node.soft_get("name", self.node.id)
        assert self.type != "in", f"Can't get tensor debug info for input port at {name} node"
        if self.node.graph.stage == "front":
            return self.node.out_edges().get(self.idx)
        idx = self.idx
        if renumbered and self.node["type"] != "Const":
            idx = int(idx) + len(self.node.in_nodes())
        node = self.node.out_nodes().get(idx)
        return None if node is None else node.attrs()
