"""The arrays that an inference writes: those of the user, those of results that are gone, else new ones."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from math import prod

from aot.runtime.arrays.tensors import Array, Shape, address, aligned_empty, as_array, numpy_dtype
from aot.runtime.errors import UsageError
from aot.runtime.inference.recycling import MIN_RECYCLED_BYTES, Recycler
from aot.runtime.loading.library import Library


class OutputArrays:
    """An array for each output of the compiled code, which gets `addresses`."""

    def __init__(self, library: Library) -> None:
        self.infos = library.manifest.outputs
        self.addresses = (ctypes.c_void_p * len(self.infos))()
        self.given: list[Array | None] = [None] * len(self.infos)  # by the user
        self._types = tuple(map(numpy_dtype, self.infos))
        self._recycler: Recycler | None = None  # for large results

    def set(self, index: int, value: object) -> None:
        """Write an output to the array `value`; None: to a new one each time. UsageError for an unfit array."""
        self._recycler = None  # an array of the user must not be reused
        if value is None:
            self.given[index] = None
            return
        info = self.infos[index]
        array = as_array("output", info, value)
        if not (array.flags.c_contiguous and array.flags.writeable) or address(array) % info.align:
            rule = f"a dense, writable array at a multiple of {info.align} bytes"
            raise UsageError(f"output '{info.name}': must be {rule}, got another")
        self.given[index] = array

    def fit(self, shapes: Sequence[Shape]) -> None:
        """Prepare for inferences with outputs of these shapes."""
        sizes = (prod(s) * t.itemsize for s, t in zip(shapes, self._types, strict=True))
        new = all(array is None for array in self.given)
        self._recycler = Recycler() if new and max(sizes, default=0) >= MIN_RECYCLED_BYTES else None

    def take(self, shapes: Sequence[Shape]) -> list[Array]:
        """Return arrays for the outputs: of the output's shape, or flat and of its capacity if data-dependent."""
        arrays: list[Array] = []
        spare = self._recycler.take() if self._recycler is not None else None
        for i, info in enumerate(self.infos):
            array, shape = self.given[i], shapes[i]
            if array is None and spare is not None:
                array = spare[i]
            if array is None:
                array, where = aligned_empty(shape, self._types[i], info.align)
            elif array.shape == shape or (info.late and array.size >= shape[0]):
                where = address(array)
            elif info.late:
                raise UsageError(f"output '{info.name}': must have room for {shape[0]} elements, got {array.shape}")
            else:
                raise UsageError(f"output '{info.name}': must have shape {shape}, got {array.shape}")
            arrays.append(array)
            self.addresses[i] = where
        return arrays

    def keep(self, arrays: tuple[Array, ...]) -> None:
        """Reuse large results in later inferences, once the user has dropped them."""
        if self._recycler is not None:
            self._recycler.keep(arrays)

    def release(self) -> None:
        """Free results that were kept for reuse."""
        self._recycler = None
