"""Inference of a node by the definition of its operation."""

from __future__ import annotations

from contextlib import suppress
from itertools import islice, product
from typing import Any

import numpy as np

from aot.codegen.ir.loops import Expr
from aot.frontends.openvino.attributes import Symbols
from aot.ir.inference import infer_outputs
from aot.ir.op import Op as Definition
from aot.ir.op import RegionOp
from aot.ir.operand import Operand
from aot.ir.types import Array, TensorType, dtype_of, numpy_dtype
from aot.mo.bridge.operation import operation_of
from aot.mo.ops.layer_attributes import element_type
from aot.mo.partial_infer.channels_last import with_channels_first, with_channels_last
from aot.mo.utils.arrays import dynamic_dimension, is_a, masked_arrays, shape_array
from aot.mo.utils.error import Error, InferenceError
from aot.runtime.abi import DType
from aot.runtime.errors import AotError, BudgetError, InternalError

TRIED = (DType.F32, DType.I64, DType.BOOL)  # element types of inputs whose types the graph does not say
TRIALS = 64  # most combinations of these and of the types of values: enough for three inputs
FOLDED = 1 << 24  # elements of a value that inference computes; patterns look at values of weights, too


Known = tuple[str | None, str | None]  # type and version of a node that does not say them


def infer_by_definition(node: Any, otherwise: Known = (None, None), common: DType | None = None) -> None:
    """Set shapes, values and element types of the outputs; attribute `stop_value_propagation`: no values.

    `common`: the element type that all inputs are converted to.
    """
    outputs = _outputs(node, otherwise, common)
    connected: list[int] = list(node.out_nodes())
    stops = node.has_and_set("stop_value_propagation")
    for idx in connected:
        operand = outputs[idx]
        _set_type(node, idx, operand)
        if stops:
            node.out_node(idx)["value"] = None  # of the source before
        if operand.value is None or stops:
            node.out_port(idx).data.set_shape(_shape(operand))
        else:
            node.out_port(idx).data.set_value(masked(operand.value, operand.dtype))


def infer_types_by_definition(node: Any, otherwise: Known = (None, None)) -> None:
    """Set the element types of the outputs."""
    for idx, operand in enumerate(_outputs(node, otherwise)):
        if idx in node.out_ports():
            _set_type(node, idx, operand)


def _set_type(node: Any, idx: int, operand: Operand) -> None:
    node.out_port(idx).set_data_type(numpy_dtype(operand.dtype).type, override=True)


def _outputs(node: Any, otherwise: Known, common: DType | None = None) -> tuple[Operand, ...]:
    op = operation_of(node, otherwise)
    name = node.soft_get("name", node.id)
    if isinstance(op, RegionOp):
        raise Error("{} ({}): inference of operations with bodies needs their own `infer`", op.type, name)
    inputs, loose = _inputs(node, op)
    if common is not None:
        inputs = [_cast(operand, common) for operand in inputs]
    op, inputs = with_channels_first(node, op, inputs)
    try:
        return with_channels_last(node, _with_values(op, *_fitting(op, inputs, loose)))
    except (BudgetError, InternalError):
        raise
    except AotError as error:
        raise InferenceError("{}, in layer {!r}", error, name) from error


def _fitting(
    op: Definition, inputs: list[Operand | None], loose: list[int]
) -> tuple[list[Operand | None], tuple[Operand, ...]]:
    """Return the inputs and the outputs; inputs in `loose` have no declared types, and may get other types.

    The types are those that the operation takes: a condition is boolean, an index an integer. AotError if none fits.
    """
    try:
        return inputs, infer_outputs(op, inputs, {})
    except AotError as error:
        kinds = [dict.fromkeys([operand.type.dtype, *TRIED]) for i in loose if (operand := inputs[i]) is not None]
        for types in islice(product(*kinds), 1, TRIALS):
            changed = list(inputs)
            for idx, dtype in zip(loose, types, strict=True):
                changed[idx] = _cast(inputs[idx], dtype)
            with suppress(AotError):
                return changed, infer_outputs(op, changed, {})
        promoted = _promoted(inputs, op.uniform or tuple(range(len(inputs))))
        if promoted is not None:
            with suppress(AotError):
                return promoted, infer_outputs(op, promoted, {})
        raise error


def _promoted(inputs: list[Operand | None], uniform: tuple[int, ...]) -> list[Operand | None] | None:
    """Return the inputs in one type: that of the unknown values, else NumPy's common one; None if it is theirs.

    Constants of several types are computed with until Model Optimizer gives them the type of the other operand.
    """
    operands = [o for i in uniform if i < len(inputs) and (o := inputs[i]) is not None]
    values = [o.value for o in operands if o.value is not None and o.value.dtype != object]
    fixed = {o.type.dtype for o in operands if o.value is None or o.value.dtype == object}
    if not values or len(fixed) > 1 or len({o.type.dtype for o in operands}) < 2:
        return None
    common = fixed.pop() if fixed else dtype_of(np.empty(0, np.result_type(*values)))
    return [_cast(o, common) if i in uniform else o for i, o in enumerate(inputs)]


def _cast(operand: Operand | None, dtype: DType) -> Operand | None:
    if operand is None:
        return None
    value = operand.value
    cast = value if value is None or value.dtype == object else value.astype(numpy_dtype(dtype))
    return Operand(TensorType(dtype, operand.type.dims), cast)


def _with_values(op: Definition, inputs: list[Operand | None], outputs: tuple[Operand, ...]) -> tuple[Operand, ...]:
    """Return the outputs with values that inference leaves to a later pass, because they are large."""
    known = [i is not None and i.value is not None and i.value.dtype != object for i in inputs]
    small = all(o.type.is_static and np.prod(o.type.static_shape, dtype=np.int64) <= FOLDED for o in outputs)
    if not inputs or not all(known) or not small or all(o.value is not None for o in outputs):
        return outputs
    values = op.fold(*inputs)
    if values is None:
        return outputs
    return tuple(Operand(o.type, v) for o, v in zip(outputs, values, strict=True))


def _inputs(node: Any, op: Definition) -> tuple[list[Operand | None], list[int]]:
    """Return the operands, and those without an element type that a node declares.

    It is that of the value, else that of another input, else f32. Unknown sizes are symbols.
    """
    symbols = Symbols()
    nodes = node.in_nodes()
    count = max(nodes, default=-1) + 1
    types = {idx: _type(node, idx) for idx in nodes}
    alike = next((types[i] for i in op.uniform or range(count) if types.get(i) is not None), None)
    operands: list[Operand | None] = []
    for idx in range(count):
        data = nodes.get(idx)
        if data is None:
            operands.append(None)
            continue
        own = types[idx]
        dtype = own if own is not None else (alike if idx in op.uniform and alike is not None else DType.F32)
        operands.append(_operand(data, dtype, symbols))
    while operands and operands[-1] is None:
        operands.pop()
    return operands, [
        i for i, operand in enumerate(operands) if operand is not None and not node.in_port(i).is_declared()
    ]


def _type(node: Any, idx: int) -> DType | None:
    port = node.in_port(idx)
    known = port.get_data_type() if port.is_data_type_defined() else None
    return None if known is None else element_type(known)


def _operand(data: Any, dtype: DType, symbols: Symbols) -> Operand:
    packed = data.soft_get("force_type", None)
    if packed in ("U4", "I4", "U1"):  # the value is bytes, each with several elements
        return Operand(TensorType(DType(packed.lower()), tuple(int(d) for d in data["force_shape"])))
    value = data.soft_get("value", None)
    if value is not None and not is_a(value, (np.ndarray, np.generic, int, float, bool, list, tuple)):
        value = None  # an object that has a shape only
    shape = np.shape(value) if value is not None else data.soft_get("shape", None)
    if shape is None:
        return Operand(TensorType(dtype, None))
    dims = tuple(symbols.make(data.id, i, 0, None) if d is dynamic_dimension else int(d) for i, d in enumerate(shape))
    if value is None:
        return Operand(TensorType(dtype, dims))
    array = _symbolic(value, data.id, symbols)
    return Operand(TensorType(dtype if array.dtype == object else dtype_of(array), dims), array)


def _symbolic(value: Any, label: str, symbols: Symbols) -> Array:
    """Return a value with symbols in place of masked elements."""
    if not masked_arrays.is_masked(value):
        return np.asarray(value)
    array = np.array(value.data, object)
    for i, hidden in enumerate(masked_arrays.getmaskarray(value).reshape(-1)):
        if hidden:
            array.reshape(-1)[i] = symbols.make(f"{label}.value", i, 0, None)
    return array


def _shape(operand: Operand) -> Any:
    dims = operand.type.dims
    return None if dims is None else shape_array([dynamic_dimension if isinstance(d, Expr) else d for d in dims])


def masked(value: Array, dtype: DType) -> Any:
    """Return a value with masks in place of symbols."""
    if value.dtype != object or dtype is DType.STRING:
        return value
    flat = [dynamic_dimension if isinstance(v, Expr) else v for v in value.reshape(-1)]
    return shape_array(flat, numpy_dtype(dtype)).reshape(value.shape)
