"""The variables of a request, which ReadValue and Assign read and set, and which persist between inferences.

for state in request.query_state():
    state.name, state.state             an array, zeros of no size where a dimension varies and nothing is kept
    state.state = array                 the next inference reads it
    state.reset()                       the next inference takes the initial value
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable
from math import prod

import numpy as np

from aot.runtime.abi import Request
from aot.runtime.arrays import pages
from aot.runtime.arrays.tensors import Array, Shape, address, aligned_bytes, as_array, fits, mismatch, numpy_dtype
from aot.runtime.errors import UsageError
from aot.runtime.loading.library import Library
from aot.runtime.loading.manifest import CacheInfo, VariableInfo

_ENTRY_BYTES = 8  # bytes of a flag, an offset or a size
_LINE_BYTES = 64
_ROOM_STEP = 128  # tokens; rooms are odd multiples of half of it, see `aot.lowering.define.growing_variables`


class Variables:
    """The state of one request: memory that grows with the variables' sizes."""

    def __init__(self, library: Library, request: Request) -> None:
        """`request` always has the address of the memory."""
        self._request = request
        self.infos = library.manifest.variables
        self._size = library.state_size
        self._fixed = max(map(_end, self.infos), default=0)
        self.memory = aligned_bytes(0)
        self._sparse: mmap.mmap | None = None  # owner of the memory while it has small pages

    def fit(self, symbols: ctypes.Array[ctypes.c_int64]) -> None:
        """Allocate memory for the state that these symbols require."""
        self._grow(self._size(ctypes.addressof(symbols)))
        if self._sparse is not None and self._is_half_full():
            pages.join_pages(self._sparse)
            self._sparse = None

    def reset(self) -> None:
        """Forget all variables; the rows of those that grow in place stay behind, without a reader."""
        ends = [info.cache.data for info in self.infos if info.cache is not None]
        self.memory[: max(ends, default=self.memory.nbytes)] = 0

    def forget(self, info: VariableInfo) -> None:
        """Reset a variable, as if it had never been set."""
        if info.flag < self.memory.nbytes:
            self._entries(info)[:] = 0
        if info.data is not None:
            self.memory[info.data : info.data + _bytes(info, _shape(info))] = 0

    def get(self, info: VariableInfo) -> Array:
        """Return a copy of a variable's value; zeros if it is not set."""
        shape, offset = _shape(info), info.data
        if info.flag >= self.memory.nbytes:  # before the first inference
            return np.zeros(shape, numpy_dtype(info.tensor))
        if info.cache is not None:
            return self._cached(info, info.cache, self._room(info.cache)).copy()
        if offset is None:
            offset, shape = int(self._entries(info)[1]), self._sizes(info)
        part = self.memory[offset : offset + _bytes(info, shape)]
        return part.view(numpy_dtype(info.tensor)).reshape(shape).copy()

    def set(self, info: VariableInfo, value: object) -> None:
        """Set a variable; UsageError for another type or a shape that the variable cannot have."""
        array = as_array("variable", info.tensor, value)
        if not fits(info.tensor, array.shape):
            raise mismatch("variable", info.tensor, array)
        if info.cache is not None:
            self._append(info, info.cache, array)
            return
        offset = info.data
        if offset is None:  # after the allocated part: the next inference moves it to its offset
            offset = _lines(max(self.memory.nbytes, self._fixed))
        self._grow(offset + _lines(array.nbytes))
        self.memory[offset : offset + array.nbytes] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        self._entries(info)[:] = (1, offset, *(array.shape[k] for k in info.varying))[: info.entries]

    def truncate(self, info: VariableInfo, count: int) -> None:
        """Keep the first `count` elements along the last dimension that varies; UsageError if there are fewer."""
        axis = info.cache.axis if info.cache is not None else max(info.varying, default=-1)
        length = 0 if axis < 0 else self.get(info).shape[axis] if info.cache is None else self._length(info)
        if axis < 0 or not 0 <= count <= length:
            rule = f"keeps 0 to {length} elements along a dimension that varies"
            raise UsageError(f"truncate: {info.tensor.name!r} {rule}, got {count}")
        if info.cache is not None:
            self._entries(info)[-1] = count
        elif count < length:
            self.set(info, self.get(info)[(slice(None),) * axis + (slice(count),)])

    def part(self, info: VariableInfo, begin: int, end: int) -> Array:
        """Return a copy of some tokens of a set variable that grows in place; UsageError for another one."""
        if info.cache is None or not self._is_set(info):
            raise UsageError(f"part: must be of a set variable that grows in place, got {info.tensor.name!r}")
        kept = self._cached(info, info.cache, self._room(info.cache))
        return kept[(slice(None),) * info.cache.axis + (slice(begin, end),)].copy()

    def take_row(self, other: Variables) -> None:
        """Append a row: the first one of `other`, variables of the same model that grow in place.

        All rows then count as long as the longest; elements past the end of a shorter one are finite numbers.
        """
        caches = [(info, info.cache) for info in self.infos if info.cache is not None]
        tokens, rows = other._length(caches[0][0]), self._rows()
        length = max(tokens, self._length(caches[0][0]) if rows else 0)
        room = self._make_room(caches[0][1], rows + 1, length)
        self._row(caches[0][1], rows, room)[:] = 0
        for info, cache in caches:
            kept = other._cached(info, cache, other._room(cache))[:1]
            self._view(info, cache, room, (rows + 1, *kept.shape[1:]))[rows:] = kept
        self._set_sizes(rows + 1, length)

    def drop_row(self, row: int) -> None:
        """Remove a row; the last one takes its place."""
        cache, last = self.infos[0].cache, self._rows() - 1
        assert cache is not None and 0 <= row <= last
        room = self._room(cache)
        if row < last:
            self._row(cache, row, room)[:] = self._row(cache, last, room)
        if last:
            self._set_sizes(last, self._length(self.infos[0]))
        else:
            self.reset()

    def _rows(self) -> int:
        return int(self._entries(self.infos[0])[2]) if self._is_set(self.infos[0]) else 0

    def _set_sizes(self, rows: int, tokens: int) -> None:
        for info in self.infos:
            self._entries(info)[:] = (1, 0, rows, tokens)

    def _row(self, cache: CacheInfo, row: int, room: int) -> Array:
        """Return the bytes of a row."""
        size = cache.row * room * numpy_dtype(self.infos[0].tensor).itemsize
        return self.memory[cache.data + row * size : cache.data + (row + 1) * size]

    def _make_room(self, cache: CacheInfo, rows: int, tokens: int) -> int:
        """Make room for that many rows and tokens, and return for how many tokens each row has room now."""
        room = self._room(cache) if self.memory.nbytes > cache.room else 0
        room_needed = max(room, _rounded(tokens))
        item = numpy_dtype(self.infos[0].tensor).itemsize
        values = [(info, self.get(info)) for info in self.infos if self._is_set(info)] if room_needed != room else []
        self._grow(cache.data + rows * cache.row * room_needed * item + 2 * _LINE_BYTES)
        for info, value in values:
            assert info.cache is not None
            self._view(info, info.cache, room_needed, value.shape)[...] = value
        self.memory[cache.room : cache.room + _ENTRY_BYTES].view(np.int64)[0] = room_needed
        return room_needed

    def _length(self, info: VariableInfo) -> int:
        """Return the tokens that a variable which grows in place keeps."""
        return int(self._entries(info)[-1]) if self._is_set(info) else 0

    def _room(self, cache: CacheInfo) -> int:
        """Return the tokens that variables which grow in place have room for."""
        return int(self.memory[cache.room : cache.room + _ENTRY_BYTES].view(np.int64)[0])

    def _cached(self, info: VariableInfo, cache: CacheInfo, room: int) -> Array:
        """Return a view of the kept elements of a variable that grows in place."""
        return self._view(info, cache, room, self._sizes(info))

    def _sizes(self, info: VariableInfo) -> Shape:
        """Return the shape of a variable that varies as it is now."""
        sizes = list(_shape(info))
        for k, n in zip(info.varying, self._entries(info)[2:], strict=True):
            sizes[k] = int(n)
        return tuple(sizes)

    def _view(self, info: VariableInfo, cache: CacheInfo, room: int, shape: Shape) -> Array:
        """Return a view of the memory of a variable with that many rows and tokens."""
        dtype, axis = numpy_dtype(info.tensor), cache.axis
        width = prod(shape[axis + 1 :])
        outer, inner = shape[1:axis], shape[axis + 1 :]
        tokens = (*inner, room) if cache.last else (room, *inner)
        rows = max(shape[0], 1)
        first = cache.data + cache.before * room * dtype.itemsize
        size = prod(outer) * room * width
        strided = (
            np.ndarray(
                (rows, *outer, *tokens),
                dtype,
                self.memory.data,
                first,
                (cache.row * room * dtype.itemsize, *_dense((*outer, *tokens), dtype.itemsize)),
            )
            if size
            else np.zeros((rows, *outer, *tokens), dtype)
        )
        view = np.moveaxis(strided, -1, axis) if cache.last else strided
        return view[: shape[0]][(slice(None),) * axis + (slice(shape[axis]),)]

    def _append(self, info: VariableInfo, cache: CacheInfo, array: Array) -> None:
        """Set a variable that grows in place; all of them move if it needs more room."""
        rows, tokens = array.shape[0], array.shape[cache.axis]
        others = [one for one in self.infos if one is not info and self._is_set(one)]
        most = max([rows, *(self._sizes(one)[0] for one in others)])
        room = self._room(cache) if info.flag < self.memory.nbytes else 0
        room_needed = room if tokens <= room else _rounded(tokens)
        self._grow(cache.data + most * cache.row * room_needed * array.itemsize + 2 * _LINE_BYTES)
        values = [(one, self.get(one)) for one in others] if room_needed != room else []
        for one, value in [*values, (info, array)]:
            assert one.cache is not None
            self._view(one, one.cache, room_needed, value.shape)[...] = value
        self._entries(info)[:] = (1, 0, *(array.shape[k] for k in info.varying))
        self.memory[cache.room : cache.room + _ENTRY_BYTES].view(np.int64)[0] = room_needed

    def _is_set(self, info: VariableInfo) -> bool:
        return info.flag < self.memory.nbytes and bool(self._entries(info)[0])

    def _grow(self, size: int) -> None:
        if size > self.memory.nbytes:
            before, sparse = self.memory, None
            if size >= max(pages.LARGE_BYTES, 2 * before.nbytes):  # most of it is room for later
                sparse = pages.small_pages(size)
            after = aligned_bytes(size, zero=True) if sparse is None else np.frombuffer(sparse, np.uint8)
            after[: before.nbytes] = before
            where = address(after)
            # no call between these two, so that a signal handler cannot raise there
            self._request.state = where
            self.memory = after
            self._sparse = sparse

    def _is_half_full(self) -> bool:
        """True if variables that grow in place fill half of their room."""
        info = self.infos[0]
        return info.cache is not None and 2 * self._length(info) > self._room(info.cache)

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

    def truncate(self, count: int) -> None:
        """Keep the first `count` elements along the last dimension that varies; without a copy if it grows in place.

        UsageError if it has fewer, or not this dimension; BusyError while an inference runs.
        """
        self._idle()
        self._variables.truncate(self._info, count)

    def part(self, begin: int, end: int) -> Array:
        """Return the tokens from `begin` to `end` of a set variable that grows in place, as a new array."""
        self._idle()
        return self._variables.part(self._info, begin, end)

    def reset(self) -> None:
        """Reset the variable: the next inference uses the initial value."""
        self._idle()
        self._variables.forget(self._info)


def _shape(info: VariableInfo) -> Shape:
    return tuple(n if isinstance(n, int) else 0 for n in info.tensor.shape)


def _end(info: VariableInfo) -> int:
    """Return the end of the part of a variable with a fixed offset."""
    return info.flag + info.entries * _ENTRY_BYTES if info.data is None else info.data + _bytes(info, _shape(info))


def _dense(shape: Shape, item: int) -> Shape:
    """Return the strides in bytes of a dense array."""
    return tuple(item * prod(shape[k + 1 :]) for k in range(len(shape)))


def _rounded(tokens: int) -> int:
    """Return the room for that many tokens."""
    return -(-tokens // _ROOM_STEP) * _ROOM_STEP + _ROOM_STEP // 2


def _lines(count: int) -> int:
    return -(-count // _LINE_BYTES) * _LINE_BYTES


def _bytes(info: VariableInfo, shape: Shape) -> int:
    return prod(shape) * numpy_dtype(info.tensor).itemsize
