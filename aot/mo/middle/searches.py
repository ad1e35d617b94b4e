"""Searches that fusing transformations use: inputs with known values, and operations near a node."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

from aot.mo.graph.graph import Node, Port


def _only(items: Sequence[Any]) -> Any:
    return items[0] if len(items) == 1 else None


def get_value_id(node: Node) -> Any:
    """Return the number of the only input with a known value; None if there is none, or several."""
    return _only([i for i, source in node.in_nodes().items() if source.has_valid("value")])


def get_tensor_id(node: Node) -> Any:
    """Return the number of the only input without a known value; None if there is none, or several."""
    return _only([i for i, source in node.in_nodes().items() if not source.has_valid("value")])


def get_value_in_port(node: Node) -> Port | None:
    """Return the only input with a known value; None if there is none, or several."""
    return _only([port for port in node.in_ports().values() if port.data.get_value() is not None])


def get_tensor_in_port(node: Node) -> Port | None:
    """Return the only input without a known value; None if there is none, or several."""
    return _only([port for port in node.in_ports().values() if port.data.get_value() is None])


def common_bfs(
    start_node: Node,
    allowed_ops: Iterable[str],
    op_name: Iterable[str],
    is_backward: bool = True,
    allowed_all: bool = False,
    attr_to_check: str = "type",
    follow_multi_consumer_data_nodes: bool = False,
) -> list[Node]:
    """Return the nearest operations, above or below, that have one of `op_name` as `attr_to_check`.

    The search passes operations of `allowed_ops`, or all; at another one it finds nothing. Upwards it does not pass
    data nodes with several consumers, unless `follow_multi_consumer_data_nodes` is set.
    """
    kinds, passed = set(op_name), set(allowed_ops)
    endpoints: dict[str, Node] = {}
    seen: set[str] = set()
    waiting = deque([start_node])
    while waiting:
        node = waiting.popleft()
        if node.id in seen:
            return []
        seen.add(node.id)
        around: Any = node.in_nodes() if is_backward else node.out_nodes()
        nearest: list[Node] = list(around.values() if hasattr(around, "values") else around)
        for near in nearest:
            if near.has_valid(attr_to_check):
                if near[attr_to_check] in kinds:
                    endpoints.setdefault(near.id, near)
                elif allowed_all or near.op in passed:
                    waiting.append(near)
                else:
                    return []
            elif near.kind == "data" and near.soft_get("value", None) is None:
                alone = not is_backward or follow_multi_consumer_data_nodes or len(near.out_nodes()) == 1
                waiting.extend([near] if alone else [])
    return list(endpoints.values())


def forward_bfs(
    start_node: Node, allowed_ops: Iterable[str], op_name: Iterable[str], allowed_all: bool = False
) -> list[Node]:
    return common_bfs(start_node, allowed_ops, op_name, False, allowed_all)


def backward_bfs(
    start_node: Node, allowed_ops: Iterable[str], op_name: Iterable[str], allowed_all: bool = False
) -> list[Node]:
    return common_bfs(start_node, allowed_ops, op_name, True, allowed_all)


def get_next_operation(node: Node) -> list[Node]:
    """Return the operations that read an operation's data nodes."""
    assert node.kind == "op", f"{node.id}: an operation, got {node.kind}"
    consumers = [consumer for data in node.out_nodes().values() for consumer in data.out_nodes()]
    return list({consumer.id: consumer for consumer in consumers}.values())
