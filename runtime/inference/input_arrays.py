"""The arrays that an inference reads: those of the user if code can read them in place, else copies."""

from __future__ import annotations

import ctypes
from typing import cast

import numpy as np

from aot.runtime.abi import ARENA_ALIGN
from aot.runtime.arrays.tensors import (
    Array,
    Shape,
    address,
    aligned_empty,
    as_array,
    default_of,
    fits,
    mismatch,
    numpy_dtype,
    static_shape,
)
from aot.runtime.errors import UsageError
from aot.runtime.loading.library import Library


class InputArrays:
    """An array for each input of the compiled code, which gets `addresses`."""

    def __init__(self, library: Library) -> None:
        self.infos = library.manifest.inputs
        self.addresses = (ctypes.c_void_p * len(self.infos))()
        self.resized = True  # True if shapes differ from those that sizes were computed for
        self._types = tuple(map(numpy_dtype, self.infos))
        self._arrays: list[Array | None] = [None] * len(self.infos)  # kept alive as long as the code may read them
        self._copies: list[Array | None] = [None] * len(self.infos)
        optional = [(i, info) for i, info in enumerate(self.infos) if info.default is not None]
        self.defaults = {i: default_of(info, library.weights) for i, info in optional}
        self._bound_now: set[int] = set()  # indices of inputs with defaults that are set since `begin`

    def bind(self, index: int, value: object) -> None:
        """Bind an input; UsageError for an array of another type, or of a shape that the input does not accept."""
        info = self.infos[index]
        array = cast(Array, value)
        if self.defaults:
            self._bound_now.add(index)
        if type(array) is not np.ndarray or array.dtype != self._types[index]:
            array = as_array("input", info, value)
        if array.shape != info.shape and not fits(info, array.shape):
            from aot.runtime.inference.agreement import out_of_range

            wrong = out_of_range(info, array.shape)
            raise UsageError(wrong) if wrong is not None else mismatch("input", info, array)
        if array is self._arrays[index] and array.flags.c_contiguous:
            return
        where = address(array)
        if not array.flags.c_contiguous or where % info.align:
            array = self._copied(index, array)
            where = address(array)
        before = self._arrays[index]
        self.resized |= before is None or before.shape != array.shape
        self.addresses[index] = where
        self._arrays[index] = array

    def begin(self) -> None:
        """Forget which inputs were bound: those that are not bound by `end` get their defaults."""
        self._bound_now.clear()

    def end(self) -> None:
        """Bind the defaults of inputs that were not bound since `begin`."""
        for index in self.defaults.keys() - self._bound_now:
            self.bind(index, self.defaults[index])

    def fill(self) -> None:
        """Bind the defaults of inputs that have no array."""
        for index, default in self.defaults.items():
            if self._arrays[index] is None:
                self.bind(index, default)

    def copy(self) -> None:
        """Bind copies of all arrays, so that the user may change them."""
        for index, array in enumerate(self._arrays):
            if array is not None and array is not self._copies[index]:
                copied = self._copied(index, array)
                where = address(copied)
                self.addresses[index] = where
                self._arrays[index] = copied

    def get(self, index: int) -> Array:
        """Return the array of an input; UsageError if it has none."""
        array = self._arrays[index]
        if array is None:
            raise UsageError(f"input '{self.infos[index].name}': needs an array, got none")
        return array

    def zeros(self, index: int) -> Array | None:
        """Return a new array of zeros for an input of fixed size that has no array."""
        shape = static_shape([self.infos[index]])
        if self._arrays[index] is not None or shape is None:
            return None
        array, _ = aligned_empty(shape[0], self._types[index], ARENA_ALIGN)
        array[...] = 0
        return array

    def shapes(self) -> tuple[Shape, ...]:
        """Return the shapes of all inputs; UsageError if one has no array."""
        return tuple(self.get(i).shape for i in range(len(self._arrays)))

    def release(self) -> None:
        """Free copies that no input is bound to."""
        self._copies = [None if copy is not self._arrays[i] else copy for i, copy in enumerate(self._copies)]

    def _copied(self, index: int, array: Array) -> Array:
        """Return a dense, aligned copy."""
        copy = self._copies[index]
        if copy is None or copy.shape != array.shape:
            copy, _ = aligned_empty(array.shape, array.dtype, ARENA_ALIGN)
            self._copies[index] = copy
        np.copyto(copy, array)
        return copy
