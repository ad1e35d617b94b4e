"""Tensors of *.safetensors, mapped into memory. Every length and offset is checked before it is used.

8 bytes: length of the header | header: JSON, names to type, shape, offsets | data, which tensors fill without overlaps
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from aot.codegen.dataclass import dataclass
from aot.frontends.kinds import SAFETENSORS
from aot.ir.types import Array, numpy_dtype
from aot.runtime.abi import DType
from aot.runtime.errors import CorruptError, UnsupportedError
from aot.runtime.regular import check_file, open_file

ALONE, INDEX = SAFETENSORS
MAX_HEADER = 100 << 20  # bytes, as the format's own library allows
MAX_JSON = 64 << 20  # bytes of another file
MAX_DIMS, MAX_SIZE = 8, 1 << 40
WIDTHS = {
    64: "F64 I64 U64",
    32: "F32 I32 U32",
    16: "F16 BF16 I16 U16",
    8: "I8 U8 BOOL F8_E4M3 F8_E5M2 F8_E8M0",
    4: "F4",
}
BITS = {kind: bits for bits, kinds in WIDTHS.items() for kind in kinds.split()}
FLOATS = {"F32": DType.F32, "F16": DType.F16, "BF16": DType.BF16}
Raw = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Stored:
    """A tensor as it lies in a file; `kind` is the format's name of the type of its elements."""

    name: str
    file: str
    kind: str
    shape: tuple[int, ...]
    raw: Raw

    @property
    def dtype(self) -> DType:
        """Type of the elements; UnsupportedError for one that is not of floats."""
        if self.kind not in FLOATS:
            raise UnsupportedError(
                f"{self.file}: tensor {self.name!r}: types {', '.join(FLOATS)} can be read, got {self.kind}"
            )
        return FLOATS[self.kind]

    @property
    def array(self) -> Array:
        """The elements, a view of the file if they are aligned."""
        dtype = numpy_dtype(self.dtype)
        raw = self.raw if self.raw.ctypes.data % dtype.itemsize == 0 else self.raw.copy()
        return raw.view(dtype).reshape(self.shape)


def read_json(path: Path) -> dict[str, object]:
    """Return the object in a file of a model's folder; CorruptError for another thing."""
    return _object(_read(path), path.name)


def read_list(path: Path) -> list[object]:
    """Return the list in a file of a model's folder; CorruptError for another thing."""
    tree = _tree(_read(path), path.name)
    if not isinstance(tree, list):
        raise CorruptError(f"{path.name}: must be a list in JSON, got {type(tree).__name__}")
    return cast("list[object]", tree)


def _read(path: Path) -> bytes:
    with open_file(path, "model") as stream:
        data = stream.read(MAX_JSON + 1)
    if len(data) > MAX_JSON:
        raise CorruptError(f"{path.name}: must have at most {MAX_JSON} bytes, got more")
    return data


def read_tensors(folder: Path) -> dict[str, Stored]:
    """Return the tensors of all files of a model; CorruptError for files that are damaged, or that the index lacks."""
    index = folder / INDEX
    if not index.is_file():
        return read_file_tensors(folder / ALONE)
    entries = read_json(index).get("weight_map")
    if not isinstance(entries, dict):
        raise CorruptError(f"{INDEX}: weight_map must be an object, got {type(entries).__name__}")
    file_of_tensor = cast("dict[str, object]", entries)
    tensors: dict[str, Stored] = {}
    for name in dict.fromkeys(map(str, file_of_tensor.values())):
        if Path(name).name != name or not name.endswith(".safetensors"):
            raise CorruptError(
                f"{INDEX}: files must be names of the folder that end with .safetensors, got {name[:80]!r}"
            )
        if not (folder / name).is_file():
            raise CorruptError(f"{INDEX}: each file must lie beside it, got {name[:80]!r}")
        tensors |= {key: t for key, t in read_file_tensors(folder / name).items() if file_of_tensor.get(key) == name}
    if missing := file_of_tensor.keys() - tensors.keys():
        raise CorruptError(f"{INDEX}: each tensor must lie in its file, got {min(missing)[:80]!r}")
    return tensors


def read_file_tensors(path: Path) -> dict[str, Stored]:
    """Return the tensors of one file, by name."""
    check_file(path, "model")
    data: Raw = np.memmap(path, np.uint8, "r") if path.stat().st_size else np.zeros(0, np.uint8)
    size = int.from_bytes(data[:8].tobytes(), "little")
    if len(data) < 8 or size > min(len(data) - 8, MAX_HEADER):
        raise CorruptError(
            f"{path.name}: safetensors: the header must lie in the file, got {size} of {len(data)} bytes"
        )
    header = _object(data[8 : 8 + size].tobytes(), path.name)
    body, tensors = data[8 + size :], dict[str, Stored]()
    byte_ranges: list[tuple[int, int]] = []
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        kind, shape, begin, end = _entry(name, entry, path.name)
        if end > len(body) or (end - begin) * 8 != prod(shape) * BITS[kind]:
            rule = f"{kind}{list(shape)} fills its bytes in a file of {len(body)}"
            raise CorruptError(f"{path.name}: safetensors: {name[:80]!r}: {rule}, got {begin} to {end}")
        byte_ranges.append((begin, end))
        tensors[name] = Stored(name, path.name, kind, shape, body[begin:end])
    byte_ranges.sort()
    if any(end > begin for (_, end), (begin, _) in pairwise(byte_ranges)):
        raise CorruptError(f"{path.name}: safetensors: tensors must not overlap, got some that do")
    return tensors


def _entry(name: str, entry: object, file: str) -> tuple[str, tuple[int, ...], int, int]:
    """Return type, shape and offsets of a tensor."""
    facts: Mapping[str, object] = cast("Mapping[str, object]", entry) if isinstance(entry, dict) else {}
    kind, shape, offsets = str(facts.get("dtype")), _sizes(facts.get("shape")), _sizes(facts.get("data_offsets"))
    if kind not in BITS or shape is None or offsets is None or len(shape) > MAX_DIMS or len(offsets) != 2:
        rule = "has a type, a shape and two offsets"
        raise CorruptError(f"{file}: safetensors: {name[:80]!r} {rule}, got {str(entry)[:80]}")
    begin, end = offsets
    if begin > end:
        raise CorruptError(f"{file}: safetensors: {name[:80]!r} must begin before its end, got {begin} to {end}")
    return kind, shape, begin, end


def _sizes(value: object) -> tuple[int, ...] | None:
    entries = cast("list[object]", value) if isinstance(value, list) else None
    if entries is None or any(type(n) is not int or not 0 <= n <= MAX_SIZE for n in entries):
        return None
    return tuple(cast("list[int]", entries))


def _tree(data: bytes, file: str) -> object:
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise CorruptError(f"{file}: must be JSON, got {str(error)[:80]}") from None


def _object(data: bytes, file: str) -> dict[str, object]:
    tree = _tree(data, file)
    if not isinstance(tree, dict):
        raise CorruptError(f"{file}: must be an object in JSON, got {type(tree).__name__}")
    return cast("dict[str, object]", tree)
