"""Places of values among the keys of a table: numbers or strings."""

from __future__ import annotations

import numpy as np

from aot.frontends.conversion.node_context import NodeContext
from aot.frontends.conversion.texts import parts_of
from aot.ir.graph import OutPort
from aot.ir.types import Array, numpy_dtype
from aot.opset.control.strings import StringSearch
from aot.runtime.abi import DType
from aot.runtime.arrays.strings import ENCODING, encode


def place_of(node: NodeContext, x: OutPort, keys: Array, equal_nan: bool = False) -> OutPort:
    """Return the place of the first key that each element of `x` equals, the number of keys if there is none (i64).

    `equal_nan`: a NaN equals the key that is NaN.
    """
    if x.type.dtype is DType.STRING:
        return _place_of_text(node, x, keys)
    build = node.build
    sorted_keys, first = np.unique(keys.astype(numpy_dtype(x.type.dtype)), return_index=True)
    position = build.const(np.full((), len(keys)), DType.I64)
    nan = bool(keys.dtype.kind == "f" and len(keys) and np.isnan(sorted_keys[-1]))
    real = len(sorted_keys) - nan
    if real:
        known = build.const(sorted_keys[:real], x.type.dtype)
        at = build.Minimum(build.SearchSorted(known, x), node.scalar(real - 1))
        same = build.Equal(build.Gather(known, at, node.scalar(0)), x)
        position = build.Select(same, build.Gather(node.list(first.tolist()), at, node.scalar(0)), position)
    if nan and equal_nan:
        position = build.Select(build.NotEqual(x, x), node.scalar(int(first[-1])), position)
    return position


def _place_of_text(node: NodeContext, x: OutPort, keys: Array) -> OutPort:
    positions: dict[bytes, int] = {}
    for i, key in enumerate(keys.reshape(-1).tolist()):
        positions.setdefault(str(key).encode(*ENCODING), i)
    ordered = sorted(positions)
    begins, ends, symbols = encode(np.array([*ordered, b""], object)[:-1])
    build = node.build
    known = (build.const(begins, DType.I32), build.const(ends, DType.I32), build.const(symbols, DType.U8))
    at = build(StringSearch(), *parts_of(node, x), *known)
    return build.Gather(node.list([*(positions[key] for key in ordered), len(keys)]), at, node.scalar(0))
