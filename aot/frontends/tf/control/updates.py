"""Values of variables and tables as the reader hands them on: parts that are set, numbers that are looked up."""

from __future__ import annotations

from aot.frontends.conversion.lookup import place_of
from aot.frontends.tf.registry import CONVERSIONS, TfNode, tf
from aot.ir.graph import OutPort
from aot.runtime.abi import DType
from aot.runtime.errors import ModelError, UnsupportedError


@tf("TensorStridedSliceUpdate")
def strided_slice_update(
    node: TfNode, x: OutPort, begin: OutPort, end: OutPort, strides: OutPort, value: OutPort
) -> OutPort:
    """`x` with a part that StridedSlice names set: the places of the part in a row, by the same slice of all places."""
    build, slice_of = node.build, CONVERSIONS.of("StridedSlice")
    if slice_of is None:
        raise UnsupportedError(f"{node.kind}: there is no conversion for StridedSlice")
    sizes = node.dims(x, range(x.type.rank))
    count = build.ReduceProd(sizes, node.list([0]))
    row = build.Range(node.scalar(0), count, node.scalar(1), output_type=DType.I64)
    positions = slice_of(node, build.Reshape(row, sizes), begin, end, strides)
    if not isinstance(positions, OutPort):
        raise UnsupportedError(f"{node.kind}: only a part of a tensor can be set, got another value")
    shape = build.ShapeOf(positions)
    values = build.Reshape(build.Broadcast(value, shape), node.list([-1]))
    flat = build.ScatterUpdate(
        build.Reshape(x, node.list([-1])), build.Reshape(positions, node.list([-1])), values, node.scalar(0)
    )
    return build.Reshape(flat, sizes)


@tf("LookupTableFindV2")
def lookup(node: TfNode, keys: OutPort, values: OutPort, x: OutPort, default: OutPort) -> OutPort:
    """The value of each key in a table of constants, numbers or strings; `default` for others."""
    if x.type.dtype is not keys.type.dtype or default.type.dtype is not values.type.dtype or default.type.rank:
        rule = "keys and values have one type each, the default is a scalar"
        raise ModelError(f"{node.kind}: {rule}, got {keys.type}, {x.type}, {values.type} and {default.type}")
    rows = node.build.Concat(values, node.build.Reshape(default, node.list([1])), axis=0)
    return node.build.Gather(rows, place_of(node, x, node.known(keys, "keys")), node.scalar(0))
