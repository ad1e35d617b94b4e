"""Positions of dimensions in the layouts NCHW and NHWC, of 4 dimensions or 5."""

from __future__ import annotations

from typing import Any

import numpy as np

from aot.mo.graph.graph import Node
from aot.mo.utils.arrays import dynamic_dimension_value, int64_array, mo_array
from aot.mo.utils.error import Error

nchw_to_nhwc_permute = int64_array([0, 2, 3, 1])
nhwc_to_nchw_permute = int64_array([0, 3, 1, 2])
supported_layouts = ("NCHW", "NHWC")
indices_mapping = {
    4: {"NCHW": "NCHW", "NHWC": "NHWC"},
    5: {"NCHW": "NCDHW", "NHWC": "NDHWC"},
}
_SIZES = {"batch": "N", "features": "C", "depth": "D", "height": "H", "width": "W"}


def convert_shape(shape: Any, permute: Any) -> Any:
    """Return the four dimensions of a shape in another order."""
    return mo_array([shape[i] for i in permute])


def _position(letter: str, layout: str, rank: int) -> int:
    assert layout in supported_layouts, f"a layout is NCHW or NHWC, got {layout}"
    assert 4 <= rank <= 5, f"a layout has 4 or 5 dimensions, got {rank}"
    return indices_mapping[rank][layout].find(letter)


def get_batch_dim(layout: str, shape_len: int) -> int:
    return _position("N", layout, shape_len)


def get_features_dim(layout: str, shape_len: int) -> int:
    return _position("C", layout, shape_len)


def get_depth_dim(layout: str, shape_len: int) -> int:
    assert shape_len == 5, f"depth is one of 5 dimensions, got {shape_len}"
    return _position("D", layout, shape_len)


def get_height_dim(layout: str, shape_len: int) -> int:
    return _position("H", layout, shape_len)


def get_width_dim(layout: str, shape_len: int) -> int:
    return _position("W", layout, shape_len)


def shape_for_layout(layout: str, **kwargs: Any) -> Any:
    """Return a shape in a layout from `batch`, `features`, `height`, `width` and, for 5 dimensions, `depth`."""
    assert layout in supported_layouts, f"a layout is NCHW or NHWC, got {layout}"
    for name in ("batch", "features", "height", "width"):
        if name not in kwargs:
            raise Error("shape_for_layout: {} must be given", name)
    for name in kwargs:
        if name not in _SIZES:
            raise Error("shape_for_layout: one of {}, got {}", ", ".join(_SIZES), name)
    sizes = {name: size for name, size in kwargs.items() if name != "depth" or size is not None}
    shape = np.ma.ones(shape=[len(sizes)], dtype=np.int64)
    shape.fill_value = dynamic_dimension_value
    for name, size in sizes.items():
        shape[_position(_SIZES[name], layout, len(sizes))] = size
    return shape


def get_dim_from_layout(node: Node, dim: str) -> tuple[int | None, bool]:
    """Return the position of a dimension in the layout that the user gave for a node, and True if there is one."""
    values: Any = getattr(node.graph.graph.get("cmd_params"), "layout_values", None) or {}
    inputs = node.graph.get_op_nodes(op="Parameter")
    alone: Any = values.get("") if len(inputs) == 1 else None
    values_of_node: Any = values.get(node.soft_get("name", node.id)) or alone or {}
    layout: str | None = values_of_node.get("source_layout")
    if not layout:
        return None, False
    letters = layout.strip("[]").replace(",", "").upper()
    position = letters.find(dim.upper())
    return (position if position >= 0 else None), True


def layout_attrs() -> dict[str, Any]:
    """Return the places of the dimensions of an image in the order NCHW."""
    dims = {"spatial_dims": int64_array([2, 3]), "channel_dims": int64_array([1]), "batch_dims": int64_array([0])}
    return {**dims, "layout": "NCHW"}
