"""Arrays of shapes and values. A dimension that is not known is masked.

Source of the names and of the number that stands for a masked element: Model Optimizer 2024.6.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from aot.ir.types import Array
from aot.mo.utils.error import Error

masked_arrays: Any = np.ma  # its types are not known to type checkers
dynamic_dimension: Any = masked_arrays.masked
dynamic_dimension_value = -1000000007  # the number below the mask; no shape has it

Shape = Any  # an integer array, masked where a dimension is not known
_INTEGERS: Any = (int, np.int64, np.int32)


def is_a(value: Any, kinds: Any) -> bool:
    """True if `value` is an instance of a class or of one of several; its type stays Any for type checkers."""
    return isinstance(value, kinds)


def shape_array(value: Any, dtype: Any = np.int64) -> Shape:
    """Return a masked array of `value`; masked elements stay masked."""
    if is_a(value, Iterable) and not (is_a(value, np.ndarray) and value.ndim == 0):
        value = [dynamic_dimension_value if item is dynamic_dimension else item for item in value]
    return masked_arrays.masked_equal(value, dynamic_dimension_value).astype(dtype)


def _type(value: Any) -> str:
    return type(value).__name__


def undefined_shape_of_rank(rank: int) -> Shape:
    """Return a shape with `rank` unknown dimensions."""
    return shape_array([dynamic_dimension_value] * rank)


def compatible_dims(dim1: Any, dim2: Any) -> bool:
    """True if both dimensions are equal, or one is unknown."""
    return dim1 is dynamic_dimension or dim2 is dynamic_dimension or dim1 == dim2


def compatible_shapes(shape1: Shape, shape2: Shape) -> bool:
    """True if the shapes have as many dimensions, compatible in pairs."""
    if shape1.ndim != shape2.ndim or shape1.size != shape2.size:
        return False
    return all(compatible_dims(a, b) for a, b in zip(shape1, shape2, strict=True))


def _masked(value: Any) -> Any:
    return value if is_a(value, masked_arrays.MaskedArray) else shape_array(value)


def strict_compare_tensors(tensor1: Any, tensor2: Any) -> bool:
    """True if shapes, values and masks are equal; None equals None alone."""
    if tensor1 is None or tensor2 is None:
        return tensor1 is tensor2
    one, other = _masked(tensor1), _masked(tensor2)
    if one.shape != other.shape:
        return False
    mask: Any = masked_arrays.getmaskarray(one)
    if not np.array_equal(mask, masked_arrays.getmaskarray(other)):
        return False
    known = ~mask
    return bool(np.array_equal(masked_arrays.getdata(one)[known], masked_arrays.getdata(other)[known]))


def shape_delete(shape: Shape, obj: Any) -> Shape:
    """Return `shape` without the elements at `obj`, an index or several; negative ones count from the end."""
    if is_a(obj, _INTEGERS):
        obj = [obj]
    elif is_a(obj, np.ndarray):
        obj = np.atleast_1d(obj).tolist()
    if not is_a(obj, (list, tuple)):
        raise Error("shape_delete: an index, a list or an array, got {}", _type(obj))
    count = len(shape)
    positions: list[int] = [int(i) if i >= 0 else count + int(i) for i in obj]
    for position in positions:
        assert 0 <= position < count, f"shape_delete: an index into {shape}, got {position}"
    remaining = [i for i in range(count) if i not in positions]
    return shape[remaining] if is_a(shape, np.ndarray) else shape_array([shape[i] for i in remaining])


def shape_insert(shape: Any, pos: int, obj: Any) -> Shape:
    """Return `shape` with `obj`, a dimension or several, put before position `pos`."""
    if is_a(obj, _INTEGERS) or obj is dynamic_dimension:
        obj = [obj]
    if not is_a(obj, (np.ndarray, list)):
        raise Error("shape_insert: a dimension, a list or an array, got {}", _type(obj))
    return masked_arrays.concatenate((shape_array(shape[:pos]), shape_array(obj), shape_array(shape[pos:])))


def unmask_shape(value: Any) -> Any:
    """Return the dimensions as a list with -1 for unknown ones; an array without a mask as it is."""
    return value.tolist(-1) if is_a(value, masked_arrays.MaskedArray) else value


def is_fully_defined(value: Any) -> bool:
    """True if `value`, a dimension, list or array, is there and has no unknown element."""
    if value is None or value is dynamic_dimension:
        return False
    if is_a(value, masked_arrays.MaskedArray):
        return not masked_arrays.is_masked(value)
    if is_a(value, (list, tuple)):
        return not any(item is dynamic_dimension for item in value)
    return True


def int64_array(value: Any) -> Array:
    return np.array(value, dtype=np.int64)


def float32_array(value: Any) -> Array:
    return np.array(value, dtype=np.float32)


def int8_array(value: Any) -> Array:
    return np.array(value, dtype=np.int8)


def float_array(value: Any) -> Array:
    return float32_array(value)


def mo_array(value: Any, dtype: Any = None) -> Array:
    """Return an array; Python's floats become f32 unless `dtype` says otherwise."""
    array = np.array(value, dtype=dtype)
    narrow = array.dtype == np.float64 and not is_a(value, np.ndarray) and dtype != np.float64
    return array.astype(np.float32) if narrow else array


def copy_or_none(x: Any) -> Any:
    return None if x is None else x.copy()


def is_dynamic_slice(s: Any) -> bool:
    """True for a slice with an unknown bound or step."""
    return is_a(s, slice) and any(part is dynamic_dimension for part in (s.start, s.stop, s.step))


def get_shape_from_slice(input_shape: Shape, slices: list[Any]) -> Shape:
    """Return the shape of a tensor of `input_shape` after indexing with `slices`, without making it."""
    new_axes = sum(s is np.newaxis for s in slices)
    found: list[Any] = []
    axis = 0
    for s in slices:
        if s is np.newaxis:
            found.append(1)
        elif s is Ellipsis:
            count = len(input_shape) - (len(slices) - new_axes - 1)
            found.extend(input_shape[axis : axis + count])
            axis += count
        else:
            size = _sliced(input_shape[axis], s)
            found.extend([] if size is None else [size])
            axis += 1
    return shape_array([*found, *input_shape[axis:]])


def _sliced(size: Any, s: Any) -> Any:
    """Size of a dimension after a slice or an index; None if the dimension is gone."""
    if s is dynamic_dimension or (not is_a(s, slice) and s == dynamic_dimension_value):
        return dynamic_dimension
    if is_a(s, slice):
        unknown = size is dynamic_dimension or is_dynamic_slice(s)
        return dynamic_dimension if unknown else len(range(*s.indices(int(size))))
    if is_a(s, _INTEGERS):
        return None
    raise Error("get_shape_from_slice: slices, integers, newaxis and Ellipsis, got {}", _type(s))


def reverse_bypass_infer(node: Any, in_ports: list[int]) -> None:
    """Give the shape of output 0 to the inputs `in_ports` that have none."""
    if node.out_port(0).disconnected():
        return
    shape = node.out_port(0).data.get_shape()
    for idx in in_ports if shape is not None else []:
        assert node.is_in_port_connected(idx), f"{node.soft_get('name', node.id)}: input {idx} is not connected"
        if node.in_port(idx).data.get_shape() is None:
            node.in_port(idx).data.set_shape(shape)


def set_input_shapes(node: Any, *shapes: Shape) -> None:
    """Give the inputs, in order, the shapes; those that have one keep it."""
    assert len(shapes) <= len(node.in_ports())
    for idx, shape in enumerate(shapes):
        if node.is_in_port_connected(idx) and node.in_port(idx).data.get_shape() is None:
            node.in_port(idx).data.set_shape(shape)


def clarify_partial_shape(shapes: list[Shape]) -> Shape:
    """Return the shape that is known where any of `shapes` is; they must be compatible."""
    assert shapes, "clarify_partial_shape: at least one shape, got none"
    result = shapes[0].copy()
    for shape in shapes[1:]:
        message = f"shapes must be compatible, got {unmask_shape(result)} and {unmask_shape(shape)}"
        assert compatible_shapes(shape, result), message
        known = ~masked_arrays.getmaskarray(shape)
        result[known] = shape[known]
    return result


def mark_input_bins(node: Any, names: tuple[str, ...] = ("weights", "biases"), start_port: int = 1) -> None:
    """Name the constant inputs from `start_port` on by attribute `bin` of their edges."""
    for idx, name in enumerate(names, start=start_port):
        if idx in node.in_nodes() and node.in_node(idx).has_valid("value"):
            node.in_edge(idx)["bin"] = name


def assign_dims_to_weights(
    node: Any, spatial: Any, input_channel: Any, output_channel: Any = None, dims_number: int | None = None
) -> None:
    """Tell the meanings of the dimensions of weights."""
    if spatial is not None:
        node["spatial_dims"] = int64_array(spatial)
    node["input_channel_dim"] = int64_array(input_channel)
    node["output_channel_dim"] = int64_array(output_channel)
    if "dim_attrs" in node and "input_channel_dim" not in node["dim_attrs"]:
        node["dim_attrs"].append("input_channel_dim")
    node["dims_number"] = dims_number


def convert_tf_padding_to_str(padding: str) -> str:
    """Return `auto_pad` for a padding of TensorFlow."""
    return {"SAME": "same_upper", "VALID": "valid"}[padding]


def convert_deconv_tf_padding_to_str(padding: str) -> str:
    """Return `auto_pad` of a transposed convolution for a padding of TensorFlow."""
    return {"SAME": "same_lower", "VALID": "valid"}[padding]


def tf_window_op_pad_infer(
    input: Shape, window: Any, stride: Any, auto_pad: Any, is_deconv: bool = False, dilation: Any = None
) -> tuple[Any, Any]:
    """Return the padding, [n, 2], and the output's spatial shape of windows over `input`, all spatial arrays [n]."""
    if input is None or window is None or stride is None or auto_pad is None:
        return None, None
    dilation = np.ones(len(input), np.int64) if dilation is None else dilation
    step: Any = 1 / stride if is_deconv else stride
    if auto_pad in ("same_lower", "same_upper"):
        rest: Any = masked_arrays.getdata(input) % stride  # of an unknown size, too: the padding is an array of numbers
        cut: Any = rest + stride * (rest == 0)
        full: Any = np.maximum(window - cut, 0)
        low: Any = np.int64(full / 2)
        return shape_array([low, full - low]).transpose(), masked_arrays.ceil(input / step)
    if auto_pad == "valid":
        last: Any = input - (window - 1) * dilation
        whole: Any = last / step
        return np.zeros((len(input), 2), np.int64), np.int64(np.ceil(whole))
    raise Error("auto_pad: same_lower, same_upper or valid, got {}", auto_pad)
