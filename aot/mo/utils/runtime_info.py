"""rt_info of nodes: the part of a model's file besides the network."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from aot.mo.utils.types import np_data_type_to_destination_type

Key = tuple[str, int]


class RTInfo:
    """Elements by name and version."""

    def __init__(self) -> None:
        self.info: dict[Key, Any] = defaultdict(dict)

    def contains(self, attribute_name: str) -> bool:
        keys = [key for key in self.info if key[0] == attribute_name]
        assert len(keys) <= 1, f"rt_info: one {attribute_name}, got {len(keys)}"
        return bool(keys)

    def get_attribute_version(self, attribute_name: str) -> int:
        """Return the version of an element; KeyError without one."""
        for name, version in self.info:
            if name == attribute_name:
                return version
        raise KeyError(f"rt_info does not contain attribute with name {attribute_name}")


class RTInfoElement:
    """An element of rt_info."""

    def serialize(self, node: Any) -> dict[str, Any]:
        """Return the attributes of the element's tag."""
        raise NotImplementedError(f"{type(self).__name__}.serialize")

    def get_version(self) -> int:
        raise NotImplementedError(f"{type(self).__name__}.get_version")

    def get_name(self) -> str:
        raise NotImplementedError(f"{type(self).__name__}.get_name")


class _Named(RTInfoElement):
    name = ""

    def __init__(self, version: int = 0) -> None:
        self.info: dict[str, Any] = defaultdict(dict)
        self.version = version

    def get_version(self) -> int:
        return self.version

    def get_name(self) -> str:
        return self.name


class OldAPIMapOrder(_Named):
    """Order of dimensions that inputs and outputs had in the framework."""

    name = "old_api_map_order"

    def old_api_transpose_parameter(self, inv: Any) -> None:
        self.info["inverse_order"] = inv

    def old_api_transpose_result(self, order: Any) -> None:
        self.info["order"] = order

    def serialize(self, node: Any) -> dict[str, Any]:
        key = {"Parameter": "inverse_order", "Result": "order"}.get(node.soft_get("type"))
        return {"value": ",".join(map(str, self.info[key]))} if key in self.info else {}


class OldAPIMapElementType(_Named):
    """Element type that an input had in older files."""

    name = "old_api_map_element_type"

    def set_legacy_type(self, legacy_type: Any) -> None:
        self.info["legacy_type"] = legacy_type

    def serialize(self, node: Any) -> dict[str, Any]:
        info = self.info
        return {"value": np_data_type_to_destination_type(info["legacy_type"])} if "legacy_type" in info else {}
