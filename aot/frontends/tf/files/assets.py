"""Assets of a SavedModel: text files in its folder `assets` that fill tables.

cat\\t0.5
dog\\t1.5     ->     keys ["cat", "dog"] (column 0), values [0.5, 1.5] (column 1)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.ir.types import Array, numpy_dtype
from aot.runtime.abi import DType
from aot.runtime.errors import BudgetError, CorruptError, UnsupportedError

FOLDER = "assets"
MAX_BYTES = 1 << 28  # bytes of one file; vocabularies have a few megabytes
WHOLE_LINE, LINE_NUMBER = -2, -1  # columns that are none
_INTEGER = re.compile(r"\s*[+-]?[0-9]+\s*", re.ASCII)
_FLOAT = re.compile(r"\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?\s*|\s*[+-]?(inf|infinity|nan)\s*", re.I | re.A)


@dataclass(frozen=True, slots=True)
class Columns:
    """Columns of keys and of values in the lines of a file.

    `offset` is added to numbers of lines. `most`: lines that are read, -1 for all.
    """

    key: int
    value: int
    delimiter: str = "\t"
    offset: int = 0
    most: int = -1


def asset_files(meta: Any, file: str) -> dict[str, str]:
    """Return the names of files by the names of the tensors that hold their paths."""
    files: dict[str, str] = {}
    for asset in meta.asset_file_def:
        name = asset.filename
        if not name or PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts or "\0" in name:
            raise CorruptError(f"{file}: an asset must be a file in the folder {FOLDER}, got {name!r}")
        files[asset.tensor_info.name] = name
    return files


def read_lines(folder: Path, name: str) -> list[str]:
    """Return the lines of an asset. CorruptError for a file that is not inside of the SavedModel's folder."""
    root = (folder / FOLDER).resolve()
    path = (root / name).resolve()
    if not path.is_relative_to(root) or not path.is_file():
        raise CorruptError(f"{folder.name}: the asset {name!r} must be a file in the folder {FOLDER}, got none")
    size = path.stat().st_size
    if size > MAX_BYTES:
        raise BudgetError(f"{folder.name}: the asset {name!r} can have at most {MAX_BYTES} bytes, got {size}")
    text = path.read_bytes().decode("utf-8", "surrogateescape")
    lines = text.split("\n")
    lines[-1:] = [lines[-1]] if lines[-1] else []
    return [line.removesuffix("\r") for line in lines]


def table_of(lines: list[str], columns: Columns, key: DType, value: DType, what: str) -> tuple[Array, Array]:
    """Return the keys and the values in lines; CorruptError if a line lacks a column, or has no number there."""
    rows = lines if columns.most < 0 else lines[: columns.most]
    if len(rows) < columns.most:
        raise CorruptError(f"{what}: it must have {columns.most} lines, got {len(rows)}")
    if "" in rows:
        raise CorruptError(f"{what}: lines of a table must hold something, got the empty line {rows.index('')}")
    read = _Reader(rows, columns, what)
    return read.column(columns.key, key), read.column(columns.value, value)


@dataclass(frozen=True, slots=True)
class _Reader:
    rows: list[str]
    columns: Columns
    what: str

    def column(self, index: int, dtype: DType) -> Array:
        if index == LINE_NUMBER:
            if dtype is not DType.I64:
                raise CorruptError(f"{self.what}: numbers of lines must be i64, got {dtype.value}")
            return np.arange(len(self.rows), dtype=np.int64) + self.columns.offset
        texts = self.rows if index == WHOLE_LINE else [self._field(i, index) for i in range(len(self.rows))]
        if dtype is DType.STRING:
            return np.array([*texts, ""], object)[:-1]
        if dtype not in _NUMBERS:
            raise UnsupportedError(f"{self.what}: columns must be strings or numbers, got {dtype.value}")
        form, read = _NUMBERS[dtype]
        wrong = next((text for text in texts if not form.fullmatch(text)), None)
        if wrong is not None:
            raise CorruptError(f"{self.what}: a column of {dtype.value} must hold numbers, got {wrong[:40]!r}")
        try:
            return np.array([read(text) for text in texts], numpy_dtype(dtype))
        except (OverflowError, ValueError) as error:
            raise CorruptError(f"{self.what}: a column of {dtype.value} must hold such numbers, got {error}") from error

    def _field(self, row: int, index: int) -> str:
        fields = self.rows[row].split(self.columns.delimiter)
        if not 0 <= index < len(fields):
            raise CorruptError(f"{self.what}: line {row} must have column {index}, got {len(fields)} columns")
        return fields[index]


_NUMBERS: Mapping[DType, tuple[re.Pattern[str], Callable[[str], int | float]]] = {
    DType.I32: (_INTEGER, int),
    DType.I64: (_INTEGER, int),
    DType.F32: (_FLOAT, float),
    DType.F64: (_FLOAT, float),
}
