"""StridedSlice: its node keeps attribute `slices`, the indices that NumPy would be given, for transformations."""

from __future__ import annotations

from typing import Any

import numpy as np

from aot.mo.ops.base_classes import DefinedOp
from aot.mo.utils.arrays import dynamic_dimension, dynamic_dimension_value, get_shape_from_slice, is_dynamic_slice

MASKS = ("begin_mask", "end_mask", "new_axis_mask", "shrink_axis_mask", "ellipsis_mask")


class StridedSlice(DefinedOp):
    """Slices with masks. Bounds are inputs 1 and 2, steps are input 3, if it is connected."""

    @staticmethod
    def get_mask_names() -> list[str]:
        return list(MASKS)

    @staticmethod
    def infer(node: Any) -> None:
        shape, value = (getattr(node.in_port(0).data, f"get_{what}")() for what in ("shape", "value"))
        slices = StridedSlice.get_slices(node, shape)
        if value is None or any(is_dynamic_slice(s) or _is_unknown(s) for s in slices):
            node.out_port(0).data.set_shape(get_shape_from_slice(shape, slices))
        else:
            node.out_port(0).data.set_value(value[tuple(slices)])
        node["slices"] = slices
        node["force_precision_in_ports"] = dict.fromkeys(range(1, len(node.in_nodes())), "int64")

    @staticmethod
    def get_slices(node: Any, data_shape: Any) -> list[Any]:
        """Return an index for each element of the bounds: a slice, an integer, newaxis or Ellipsis.

        `dynamic_dimension_value` stands for one that is not known.
        """
        count = int(node.in_port(1).data.get_shape()[0])
        bounds = [node.in_port(i).data.get_value() for i in (1, 2)]
        steps = node.in_port(3).data.get_value() if node.is_in_port_connected(3) else np.ones(count, np.int64)
        covered = (
            len(data_shape) - count + np.count_nonzero(node.soft_get("new_axis_mask", ())) + 1
        )  # dimensions of an ellipsis
        slices: list[Any] = []
        axis = 0
        for i in range(count):
            if _is_set(node, "new_axis_mask", i):
                slices.append(np.newaxis)
                continue
            if _is_set(node, "ellipsis_mask", i) and not _is_set(node, "shrink_axis_mask", i):
                slices.append(Ellipsis)
                axis += covered
                continue
            if _is_set(node, "shrink_axis_mask", i):
                slices.append(_index(bounds[0], i, data_shape[axis]))
            elif any(values is None for values in (*bounds, steps)):
                slices.append(dynamic_dimension_value)
            else:
                start = bounds[0][i] if _is_set(node, "begin_mask", i, True) else None
                stop = bounds[1][i] if _is_set(node, "end_mask", i, True) else None
                slices.append(slice(start, stop, steps[i]))
            axis += 1
        return slices

    @staticmethod
    def align_mask_with_slice_rank(node: Any, slice_rank: int) -> None:
        """Give each mask an element for each element of the bounds: bounds count, the others are 0."""
        for mask in MASKS:
            bits = np.asarray(node.soft_get(mask, ()), np.int64).reshape(-1)
            rest = max(slice_rank - len(bits), 0)
            node[mask] = np.append(bits, np.full(rest, int(mask in ("begin_mask", "end_mask")))).astype(int)


def _is_set(node: Any, mask: str, i: int, otherwise: bool = False) -> bool:
    """True if element `i` of a mask is; `otherwise` where the mask is shorter."""
    bits = node.soft_get(mask, ())
    return bool(bits[i]) if i < len(bits) else otherwise


def _index(begin: Any, i: int, size: Any) -> int:
    """Return an index counted from the front, where that is known."""
    if begin is None or begin[i] is dynamic_dimension:
        return dynamic_dimension_value
    index = int(begin[i])
    return index + int(size) if index < 0 and size is not dynamic_dimension else index


def _is_unknown(s: Any) -> bool:
    return isinstance(s, int) and s == dynamic_dimension_value
