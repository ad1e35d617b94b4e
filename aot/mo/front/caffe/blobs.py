"""Blobs of Caffe's layers, as extractors embed them: attributes that become inputs behind the bottoms."""

from __future__ import annotations

from typing import Any

import numpy as np

from aot.mo.graph.graph import Node
from aot.mo.ops.const import Const
from aot.mo.utils.arrays import int64_array

EMBEDDED = "embedded_inputs"


def embed_input(attrs: dict[str, Any], port: int, name: str, value: Any, bin_name: str | None = None) -> None:
    """Let attribute `name` be an input: `value` as a vector of f32."""
    assert name not in attrs, f"an attribute is embedded once, got {name} again"
    attrs[name] = np.asarray(value, np.float32).reshape(-1)
    attrs.setdefault(EMBEDDED, []).append((port, name, {"bin": bin_name or name}))


def weights_biases(bias_term: bool, model_layer: Any, start_index: int = 1, proto: Any = None) -> dict[str, Any]:
    """Return the attributes of the first blob and, with `bias_term`, of the second one."""
    del proto
    attrs: dict[str, Any] = {}
    for i, name in enumerate(("weights", "biases")[: 1 + bool(bias_term)] if model_layer else ()):
        embed_input(attrs, start_index + i, name, model_layer.blobs[i].data)
    return attrs


def input_as_const(node: Node, attrs: dict[str, Any], port: int, bin: str, value: Any) -> None:
    """Connect a new constant to an input."""
    made = Const(node.graph, {"value": value, **attrs}).create_node()
    node.add_input_port(port, skip_if_exist=True)
    made.out_port(0).connect(node.in_port(port))
    node.in_port(port).bin = bin


def get_list_from_container(param: Any, prop: str, t: type[Any]) -> Any:
    """Return the numbers of a field, which has one or several."""
    value = getattr(param, prop, None) if param else None
    return [value] if isinstance(value, t) and value else value or []


def get_spatial_attr(default: list[int], single_name: str, name: str, param: Any) -> tuple[int, int]:
    """Return width and height: `name_w` and `name_h`, or the one number of `single_name` for both."""
    width, height = (getattr(param, f"{name}_{a}", 0) or d for a, d in zip("wh", default, strict=True))
    single = get_list_from_container(param, single_name, int)
    if len(single) and (not width or not height or width == height == default[0]):
        return single[0], single[0]
    return width, height


def dim_to_shape(dim: Any) -> Any:
    return int64_array(list(dim))


def connect_blobs(node: Node, bottoms: int) -> None:
    """Let the inputs behind the bottoms be what an extractor has embedded; without that, there are none."""
    for port in [i for i in node.in_ports() if int(i) >= bottoms]:
        node.in_port(port).disconnect()
        node.delete_input_port(port)
    for port, name, edge in node.attrs().pop(EMBEDDED, ()):
        value = np.asarray(node.attrs().pop(name))
        input_as_const(node, {"name": f"{node.soft_get('name', node.id)}/{name}"}, port, edge["bin"], value)
