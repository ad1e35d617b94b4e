"""Weights and constants: bytes of an entry as an array, by sizes, strides and offset.

data/weights/model_weights_config.json     name -> entry, element type, sizes, strides, offset
"""

from __future__ import annotations

from dataclasses import field
from math import prod

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.frontends.archive import Archive
from aot.frontends.pt2.files.element_types import element_type
from aot.frontends.pt2.files.schema import Table, union, whole
from aot.ir.types import Array, numpy_dtype
from aot.ir.values.estimate import check_table
from aot.runtime.errors import CorruptError, UnsupportedError

STRIDED = 7
MAX_AXES = 64  # as many as PyTorch has
FOLDERS = ("weights", "constants")

COMPLEX_TYPES = {10: np.dtype(np.complex64), 11: np.dtype(np.complex128)}  # NumPy types by PyTorch's type numbers


@dataclass(slots=True)
class Weights:
    """The tensors of an archive by name; each is read when it is looked up."""

    archive: Archive
    stored: dict[str, tuple[str, Table]] = field(default_factory=dict[str, tuple[str, Table]])

    def __contains__(self, name: str) -> bool:
        return name in self.stored

    def read(self, name: str) -> tuple[Array, bool]:
        """Return a tensor, and True if it is one of complex numbers, as pairs [.., 2].

        CorruptError if it reaches beyond its storage; UnsupportedError for pickled ones.
        """
        if name not in self.stored:
            raise CorruptError(f"{self.archive.file}: the archive must have a tensor {name!r}, got none")
        folder, entry = self.stored[name]
        if entry.value("use_pickle"):
            raise UnsupportedError(
                f"the tensor {name!r} is pickled, since it is of a subclass of tensors; "
                "torchao.utils.unwrap_tensor_subclass(module) before the export stores plain ones"
            )
        path = entry.text("path_name")
        if "/" in path:
            raise CorruptError(f"{entry.where}: path_name must be the name of an entry, got {path!r}")
        array = strided(entry.table("tensor_meta"), self.archive.read(f"data/{folder}/{path}"))
        if not np.iscomplexobj(array):
            return array, False
        return np.stack([np.real(array), np.imag(array)], -1), True


def open_weights(archive: Archive, model: str) -> Weights:
    """Read the archive's tables of the weights and constants of a model."""
    weights = Weights(archive)
    for folder in FOLDERS:
        name = f"data/{folder}/{model}_{folder}_config.json"
        if name in archive:
            config = Table(archive.json(name), f"{archive.file}: {folder}").table("config")
            weights.stored |= {key: (folder, entry) for key, entry in config.items()}
    return weights


def sizes_of(meta: Table, name: str) -> tuple[int, ...]:
    """Return sizes or strides of stored data; all must be numbers."""
    numbers: list[int] = []
    where = meta.place(name)
    for value in meta.list(name):
        tag, number = union(value, where)
        if tag != "as_int":
            raise CorruptError(f"{where}: stored tensors must have sizes that are numbers, got {tag}")
        numbers.append(whole(number, where))
        if numbers[-1] < 0:
            raise CorruptError(f"{where}: must not be negative, got {numbers[-1]}")
    if len(numbers) > MAX_AXES:
        raise CorruptError(f"{where}: there can be at most {MAX_AXES} axes, got {len(numbers)}")
    return tuple(numbers)


def strided(meta: Table, storage: memoryview) -> Array:
    """Return the tensor that lies in a storage; a view if it can be one."""
    code = meta.whole("dtype")
    dtype = COMPLEX_TYPES[code] if code in COMPLEX_TYPES else numpy_dtype(element_type(code))
    if meta.whole("layout") != STRIDED:
        raise UnsupportedError(f"{meta.where}: tensors must be strided, got layout {meta.whole('layout')}")
    sizes, strides = sizes_of(meta, "sizes"), sizes_of(meta, "strides")
    where = meta.place("storage_offset")
    offset = whole(union(meta.value("storage_offset"), where)[1], where)
    if len(sizes) != len(strides):
        raise CorruptError(f"{meta.where}: there must be as many strides as sizes, got {len(strides)} and {len(sizes)}")
    last = offset + sum((n - 1) * s for n, s in zip(sizes, strides, strict=True))
    if 0 in sizes:
        return np.zeros(sizes, dtype)
    if offset < 0 or (last + 1) * dtype.itemsize > len(storage):
        raise CorruptError(
            f"{meta.where}: elements must lie in {len(storage)} bytes, got one at {last * dtype.itemsize}"
        )
    if prod(sizes) * dtype.itemsize > len(storage):
        check_table(meta.where, *sizes, itemsize=dtype.itemsize)
    steps = [0 if n == 1 else s * dtype.itemsize for n, s in zip(sizes, strides, strict=True)]
    kind = np.dtype(np.uint8) if dtype == np.bool_ else dtype
    view = np.ndarray(sizes, kind, storage, offset * dtype.itemsize, steps)
    return view.astype(np.bool_) if dtype == np.bool_ else view
