"""Extractors and operations applied to a node."""

from __future__ import annotations

from typing import Any

from aot.mo.graph.graph import Node


def extension_extractor(
    node: Node, ex_cls: Any, disable_omitting_optional: bool = False, enable_flattening_optional_params: bool = False
) -> dict[str, Any] | None:
    """Run an extractor; return the node's attributes, None if it does not support it. The flags are not used."""
    return node.attrs() if ex_cls().extract(node) else None


def extension_op_extractor(node: Node, op_cls: Any) -> dict[str, Any]:
    """Make a node one of an operation; return its attributes."""
    op_cls.update_node_stat(node)
    return node.attrs()
