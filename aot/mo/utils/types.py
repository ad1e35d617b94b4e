"""Names of element types: of frameworks and options, of precisions (`FP32`), and of IR files (`f32`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from aot.ir.types import Array
from aot.mo.utils.error import Error

PACKED = {text: type(f"packed_{text.upper()}", (np.generic,), {}) for text in ("u1", "u4", "i4")}  # several in a byte
globals().update({cls.__name__: cls for cls in PACKED.values()})  # the names that extensions import

_ROWS: tuple[tuple[Any, str, str, tuple[str, ...]], ...] = (  # NumPy, precision, IR, other names
    (np.float32, "FP32", "f32", ("float",)),
    (np.float16, "FP16", "f16", ("half",)),
    (np.float64, "FP64", "f64", ()),
    (np.int32, "I32", "i32", ("int32",)),
    (np.int64, "I64", "i64", ("int64",)),
    (np.int8, "I8", "i8", ("int8",)),
    (bool, "BOOL", "boolean", ("bool",)),
    (np.uint8, "U8", "u8", ("uint8",)),
    (np.uint32, "U32", "u32", ("uint32",)),
    (np.uint64, "U64", "u64", ("uint64",)),
    (PACKED["u1"], "U1", "u1", ()),
    (PACKED["i4"], "I4", "i4", ("int4",)),
    (PACKED["u4"], "U4", "u4", ("uint4",)),
)
_WITHOUT_PRECISION = ("I8", "BOOL", "U8", "U32", "U64")  # known by their other names only
SUPPORTED_DATA_TYPES: dict[str, tuple[Any, str, str]] = {
    name: (kind, precision, text)
    for kind, precision, text, names in _ROWS
    for name in (*names, *(() if precision in _WITHOUT_PRECISION else (precision,)))
}


def data_type_str_to_np(data_type_str: str) -> Any:
    """Return NumPy's type for a name; None for an unknown one."""
    return SUPPORTED_DATA_TYPES.get(data_type_str, (None,))[0]


def data_type_str_to_precision(data_type_str: str) -> str | None:
    return SUPPORTED_DATA_TYPES[data_type_str][1] if data_type_str in SUPPORTED_DATA_TYPES else None


def data_type_str_to_destination_type(data_type_str: str) -> str | None:
    return SUPPORTED_DATA_TYPES[data_type_str][2] if data_type_str in SUPPORTED_DATA_TYPES else None


def np_data_type_to_precision(np_data_type: Any) -> str:
    """Return the precision of a NumPy type; Error for one that has none."""
    return _find(lambda row: same_type(row[0], np_data_type), "Data type", np_data_type)[1]


def np_data_type_to_destination_type(np_data_type: Any) -> str:
    """Return the name in IR of a NumPy type; Error for one that has none."""
    return _find(lambda row: same_type(row[0], np_data_type), "Data type", np_data_type)[2]


def destination_type_to_np_data_type(dst_type: str) -> Any:
    """Return NumPy's type for a name in IR; Error for an unknown one."""
    return _find(lambda row: row[2] == dst_type, "Destination type", dst_type)[0]


def precision_to_destination_type(data_type_str: str) -> str:
    """Return the name in IR of a precision; Error for an unknown one."""
    return _find(lambda row: row[1] == data_type_str, "Data type", data_type_str)[2]


def same_type(one: Any, other: Any) -> bool:
    return bool(one == other)


def _find(fits: Callable[[Any], bool], what: str, shown: Any) -> tuple[Any, str, str]:
    for row in _ROWS:
        if fits(row):
            return row[:3]
    raise Error('{} "{}" is not supported', what, shown)


def convert_blob(blob: Array, dst_type: Any) -> tuple[Array, int | None, int | None]:
    """Return an array of another type, and how many elements became infinite and how many zero.

    The counts are None for an array that has the type; Error for integers that would be rounded.
    """
    if blob.dtype == dst_type:
        return blob, None, None
    with np.errstate(over="ignore", invalid="ignore"):
        converted = blob.astype(dst_type)
    if dst_type in (np.int32, np.int64, np.uint8, np.int8) and not np.array_equal(blob, converted):
        raise Error('The conversion of blob with value "{}" to dst_type "{}" results in rounding', blob, dst_type)
    infinite = int(np.count_nonzero(np.isfinite(blob) != np.isfinite(converted)))
    return converted, infinite, int(np.count_nonzero((blob == 0) != (converted == 0)))
