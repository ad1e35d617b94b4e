"""The variables of a request, which ReadValue and Assign read and set, and which persist between inferences.

for state in request.query_state():
    state.name, state.state             an array, zeros of no size where a dimension varies and nothing is kept
    state.state = array                 what the next inference reads
    state.reset()                       the next inference takes the initial value
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from math import prod

import numpy as np

from runtime.abi import Request
from runtime.arrays.tensors import Array, Shape, address, aligned_bytes, as_array, fits, mismatch, numpy_dtype
from runtime.loading.library import Library
from runtime.loading.manifest import VariableInfo

_ENTRY_BYTES = 8  # bytes of a flag, an offset or a size
_LINE_BYTES = 64


class Variables:
    """The state of one request: memory that grows with the variables' sizes."""

    def __init__(self, library: Library, request: Request) -> None:
        """`request` always has the address of the memory."""
        self._request = request
        self.infos = library.manifest.variables
        self._size = library.state_size
        self._fixed = max(map(_end, self.infos), default=0)
        self.memory = aligned_bytes(0)

    def fit(self, symbols: ctypes.Array[ctypes.c_int64]) -> None:
        """Allocate memory for the state that these symbols require."""
        self._grow(self._size(ctypes.addressof(symbols)))

    def reset(self) -> None:
        self.memory[:] = 0

    def forget(self, info: VariableInfo) -> None:
        """Reset a variable, as if it had never been set."""
        if info.flag < self.memory.nbytes:
            self._entries(info)[:] = 0
        if info.data is not None:
            self.memory[info.data : info.data + _bytes(info, _shape(info))] = 0

    def get(self, info: VariableInfo) -> Array:
        """Return a copy of a variable's value; zeros if it is not set."""
        shape, place = _shape(info), info.data
        if info.flag >= self.memory.nbytes:  # before the first inference
            return np.zeros(shape, numpy_dtype(info.tensor))
        if place is None:
            place, *sizes = map(int, self._entries(info)[1:])
            for k, n in zip(info.varying, sizes, strict=True):
                shape = (*shape[:k], n, *shape[k + 1 :])
        part = self.memory[place : place + _bytes(info, shape)]
        return part.view(numpy_dtype(info.tensor)).reshape(shape).copy()

    def set(self, info: VariableInfo, value: object) -> None:
        """Set a variable; UsageError for another type or a shape that the variable cannot have."""
        array = as_array("variable", info.tensor, value)
        if not fits(info.tensor, array.shape):
            raise mismatch("variable", info.tensor, array)
        place = info.data
        if place is None:  # behind the allocated part: the next inference moves it to its offset
            place = _lines(max(self.memory.nbytes, self._fixed))
        self._grow(place + _lines(array.nbytes))
        self.memory[place : place + array.nbytes] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        self._entries(info)[:] = (1, place, *(array.shape[k] for k in info.varying))[: info.entries]

    def _grow(self, size: int) -> None:
        if size > self.memory.nbytes:
            before, after = self.memory, aligned_bytes(size)
            after[: before.nbytes] = before
            after[before.nbytes :] = 0
            where = address(after)
            # no call between these two, so that a signal handler cannot raise there
            self._request.state = where
            self.memory = after

    def _entries(self, info: VariableInfo) -> Array:
        """Return the flag and, if dimensions are dynamic, the offset and those dimensions."""
        return self.memory[info.flag : info.flag + info.entries * _ENTRY_BYTES].view(np.int64)


class VariableState:
    """One variable of a request. Accessible only while the request does not run: BusyError otherwise."""

    def __init__(self, variables: Variables, info: VariableInfo, idle: Callable[[], None]) -> None:
        """`idle` raises BusyError while an inference runs."""
        self._variables, self._info, self._idle = variables, info, idle

    @property
    def name(self) -> str:
        """Name of the variable in the network."""
        return self._info.tensor.name

    @property
    def varying(self) -> tuple[int, ...]:
        """Numbers of the dimensions that vary from inference to inference."""
        return tuple(self._info.varying)

    @property
    def state(self) -> Array:
        """Value that the next inference reads, as a new array; zeros if the variable is not set.

        A dynamic dimension of an unset variable is 0; the next inference then uses the initial value. Assign an array
        of the variable's type and shape to set it; UsageError for another one, BusyError while an inference runs.
        """
        self._idle()
        return self._variables.get(self._info)

    @state.setter
    def state(self, value: object) -> None:
        self._idle()
        self._variables.set(self._info, value)

    def reset(self) -> None:
        """Reset the variable: the next inference uses the initial value."""
        self._idle()
        self._variables.forget(self._info)


def _shape(info: VariableInfo) -> Shape:
    return tuple(n if isinstance(n, int) else 0 for n in info.tensor.shape)


def _end(info: VariableInfo) -> int:
    """Return the end of the part of a variable whose offset is fixed."""
    return info.flag + info.entries * _ENTRY_BYTES if info.data is None else info.data + _bytes(info, _shape(info))


def _lines(count: int) -> int:
    return -(-count // _LINE_BYTES) * _LINE_BYTES


def _bytes(info: VariableInfo, shape: Shape) -> int:
    return prod(shape) * numpy_dtype(info.tensor).itemsize
