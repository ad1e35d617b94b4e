"""Values of variables and tables as the reader hands them on: parts that are set, numbers that are looked up."""

from __future__ import annotations

from aot.frontends.tf.registry import Call, conversion_of, tf
from aot.ir.graph import OutPort
from runtime.abi import DType
from runtime.errors import UnsupportedError


@tf("TensorStridedSliceUpdate")
def strided_slice_update(
    node: Call, x: OutPort, begin: OutPort, end: OutPort, strides: OutPort, value: OutPort
) -> OutPort:
    """`x` with a part that StridedSlice names set: the places of the part in a row, by the same slice of all places."""
    build, slice_of = node.build, conversion_of("StridedSlice")
    if slice_of is None:
        raise UnsupportedError(f"{node.kind}: there is no conversion for StridedSlice")
    sizes = node.dims(x, range(x.type.rank))
    count = build.ReduceProd(sizes, node.list([0]))
    row = build.Range(node.scalar(0), count, node.scalar(1), output_type=DType.I64)
    places = slice_of(node, build.Reshape(row, sizes), begin, end, strides)
    if not isinstance(places, OutPort):
        raise UnsupportedError(f"{node.kind}: a part of a tensor is set, got another value")
    shape = build.ShapeOf(places)
    values = build.Reshape(build.Broadcast(value, shape), node.list([-1]))
    flat = build.ScatterUpdate(
        build.Reshape(x, node.list([-1])), build.Reshape(places, node.list([-1])), values, node.scalar(0)
    )
    return build.Reshape(flat, sizes)


@tf("LookupTableFindV2")
def lookup(node: Call, keys: OutPort, values: OutPort, x: OutPort, default: OutPort) -> OutPort:
    """The value of each key in a table of constants; `default` for others."""
    node.refuse(DType.STRING in (keys.type.dtype, x.type.dtype), "tables whose keys are strings are not supported")
    node.refuse(values.type.dtype is DType.STRING, "tables whose values are strings are not supported")
    if keys.type.rank != 1 or values.type.rank != 1 or not isinstance(keys.shape[0], int):
        raise UnsupportedError(f"{node.kind}: keys and values are vectors, got {keys.type} and {values.type}")
    build, count = node.build, keys.shape[0]
    if not count:
        return build.Broadcast(default, build.ShapeOf(x))
    same = build.Equal(build.Unsqueeze(x, node.list([x.type.rank])), keys)
    places = build.Range(node.scalar(0), node.scalar(count), node.scalar(1), output_type=DType.I64)
    at = build.ReduceMin(build.Select(same, places, node.scalar(count)), node.list([x.type.rank]))
    known = build.Less(at, node.scalar(count))
    found = build.Gather(values, build.Minimum(at, node.scalar(count - 1)), node.scalar(0))
    return build.Select(known, found, default)
