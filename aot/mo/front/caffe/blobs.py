"""Blobs of Caffe's layers, which become inputs after the bottoms, and fields of its messages as attributes."""

from __future__ import annotations

from typing import Any

import numpy as np

from aot.ir.op import Foreign
from aot.mo.extracted.nodes import extracted
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
    new_node = Const(node.graph, {"value": value, **attrs}).create_node()
    node.add_input_port(port, skip_if_exist=True)
    new_node.out_port(0).connect(node.in_port(port))
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


def conv_set_params(conv_param: Any, conv_type: str) -> dict[str, Any]:
    """Return the numbers of a convolution's message; width stands before height."""
    sizes = {"padding": ([0, 0], "pad"), "stride": ([1, 1], "stride"), "kernel": ([0, 0], "kernel")}
    found: dict[str, Any] = {
        name: get_spatial_attr(default, "kernel_size" if name == "kernel" else field, field, conv_param)
        for name, (default, field) in sizes.items()
    }
    dilation, group = (get_list_from_container(conv_param, name, int)[:1] or [1] for name in ("dilation", "group"))
    found |= {"type_str": conv_type, "dilate": dilation * 2, "group": group[0]}
    return {**found, "output": conv_param.num_output, "bias_term": conv_param.bias_term}


def conv_create_attrs(params: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes of a convolution from the numbers of `conv_set_params`."""
    attrs: dict[str, Any] = {"group": params["group"], "num_output": params["output"]}
    for name, field in (("padding", "pad"), ("stride", "stride"), ("kernel", "kernel"), ("dilate", "dilation")):
        attrs[f"{field}_w"], attrs[f"{field}_h"] = params[name]
    return {"bias_term": params["bias_term"], **extracted(Foreign("caffe", "Convolution", tuple(attrs.items())), 1)}


def dim_to_shape(dim: Any) -> Any:
    return int64_array(list(dim))


def connect_blobs(node: Node, bottoms: int) -> None:
    """Let the inputs after the bottoms be the blobs that an extractor has embedded; without them, there are none."""
    for port in [i for i in node.in_ports() if int(i) >= bottoms]:
        node.in_port(port).disconnect()
        node.delete_input_port(port)
    for port, name, edge in node.attrs().pop(EMBEDDED, ()):
        value = np.asarray(node.attrs().pop(name))
        input_as_const(node, {"name": f"{node.soft_get('name', node.id)}/{name}"}, port, edge["bin"], value)


def collect_attributes(
    obj: Any, prefix: str = "", disable_omitting_optional: bool = False, enable_flattening_nested_params: bool = False
) -> dict[str, str]:
    """Return the fields that are set or have a default, as texts; fields of inner messages, too, by their own names."""
    attrs: dict[str, str] = {}
    for field in obj.DESCRIPTOR.fields:
        value = getattr(obj, field.name)
        name = f"{prefix}__{field.name}" if enable_flattening_nested_params and prefix else field.name
        if field.message_type is not None:
            for part in value if field.is_repeated else [value] if obj.HasField(field.name) else []:
                attrs |= collect_attributes(part, name, disable_omitting_optional, enable_flattening_nested_params)
        elif field.is_repeated:
            if len(value):
                attrs[name] = ",".join(str(v) for v in value)
        elif disable_omitting_optional or field.has_default_value or obj.HasField(field.name):
            attrs[name] = _text(field, value)
    return attrs


def _text(field: Any, value: Any) -> str:
    if field.enum_type is not None:
        return f"{field.containing_type.full_name}.{field.enum_type.values_by_number[value].name}"
    return str(int(value)) if isinstance(value, bool) else str(value)


def merge_attrs(param: Any, update_attrs: dict[str, Any]) -> dict[str, Any]:
    """Return the listed attributes that the message has."""
    return {name: update_attrs[name] for name in collect_attributes(param) if name in update_attrs}
