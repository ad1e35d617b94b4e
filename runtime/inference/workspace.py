"""The memory of a request: symbols, arena and outputs, sized for its inputs and for the sizes that it computes.

fit(input shapes) -> symbols, output shapes, arena       enlarge()  once the model has computed a larger size
"""

from __future__ import annotations

import ctypes
from itertools import accumulate, pairwise

from aot.runtime.abi import ERROR_CANCELLED, ERROR_SIZE, ERROR_VALUE
from aot.runtime.arrays.tensors import Array, Shape, aligned_bytes, static_shape
from aot.runtime.errors import AotError, BudgetError, CancelledError, InternalError, UsageError
from aot.runtime.loading.library import Library
from aot.runtime.systems import processor


class Workspace:
    """Working memory of one request. `output_shapes` of a data-dependent output: its capacity in elements."""

    def __init__(self, library: Library) -> None:
        manifest = library.manifest
        self._library, self._manifest = library, manifest
        self._shapes: tuple[Shape, ...] | None = None
        self._threads = 0
        self._bytes = [info.dtype.stored_bytes for info in manifest.outputs]
        self._ranks = [len(info.shape) for info in manifest.outputs]
        self.is_data_dependent = any(info.late for info in manifest.outputs)
        self.varies = static_shape(manifest.inputs) is None or static_shape(manifest.outputs) is None
        self.varies |= bool(manifest.late)
        self.output_shapes: tuple[Shape, ...] = static_shape(manifest.outputs) or ()
        self.symbols = (ctypes.c_int64 * manifest.stored)()
        self._affordable = self.symbols[:]  # symbols whose capacities there is memory for
        self.arena = aligned_bytes(0)

    def fit(self, shapes: tuple[Shape, ...], threads: int) -> None:
        """Compute sizes and allocate memory for inputs of these shapes; UsageError if they disagree, BudgetError."""
        if (shapes, threads) == (self._shapes, self._threads):
            return
        try:
            if self.varies:
                self.output_shapes = self._resolved(shapes)
            size = self._library.arena_size(ctypes.addressof(self.symbols), threads)
            _afford("working memory", size)
            if size > self.arena.nbytes:
                self.arena = aligned_bytes(size)
        except BaseException:  # recompute everything next time, even for the same shapes
            self.symbols[:], self._shapes = self._affordable, None
            raise
        self._shapes, self._threads, self._affordable = shapes, threads, self.symbols[:]

    def enlarge(self, threads: int) -> None:
        """Compute sizes and allocate memory again, for the capacities that the inference has raised."""
        shapes, self._shapes = self._shapes, None
        assert shapes is not None
        self.fit(shapes, threads)

    def release(self) -> None:
        self.arena = aligned_bytes(0)
        self._shapes = None

    def cut(self, outputs: list[Array]) -> list[Array]:
        """Return views of the outputs with the shapes that the inference computed."""
        shapes = self._late_shapes()
        infos = self._manifest.outputs
        return [_view(a, s) if i.late else a for a, s, i in zip(outputs, shapes, infos, strict=True)]

    def failure(self, code: int) -> AotError:
        """Return the error for an error code of `infer`."""
        names = (*self._manifest.symbols, *self._manifest.late)
        values = dict(zip(names, self.symbols, strict=False))
        if code == ERROR_VALUE:
            from aot.runtime.inference.agreement import broken

            return UsageError(f"infer: {broken(self._manifest.rules, values)}")
        if code == ERROR_CANCELLED:
            return CancelledError("request: the inference was cancelled")
        text = self._library.error_text(code)
        if code == ERROR_SIZE:
            return BudgetError(f"{text}, with {', '.join(f'{name} = {value}' for name, value in values.items())}")
        return InternalError(f"infer: {text}")

    def _resolved(self, shapes: tuple[Shape, ...]) -> tuple[Shape, ...]:
        """Set symbols from the input shapes, and return the resulting output shapes."""
        flat = [extent for shape in shapes for extent in shape]
        input_dims = (ctypes.c_int64 * len(flat))(*flat)
        output_dims = (ctypes.c_int64 * sum(self._ranks))()
        symbols = ctypes.addressof(self.symbols)
        code = self._library.shapes(ctypes.addressof(input_dims), symbols, ctypes.addressof(output_dims))
        if code == ERROR_SIZE:
            raise BudgetError(self._library.error_text(code))
        if code:
            from aot.runtime.inference.agreement import disagreement

            raise UsageError(f"inputs: {disagreement(self._manifest.inputs, self._manifest.rules, shapes)}")
        known = self._parted(output_dims)
        if not self.is_data_dependent:
            return known
        sizes = (ctypes.c_int64 * len(known))()
        self._library.output_sizes(symbols, ctypes.addressof(sizes))
        _afford("outputs", sum(sizes))
        rows = zip(known, sizes, self._bytes, self._manifest.outputs, strict=True)
        return tuple((size // width,) if info.late else shape for shape, size, width, info in rows)

    def _late_shapes(self) -> tuple[Shape, ...]:
        dims = (ctypes.c_int64 * sum(self._ranks))()
        self._library.output_dims(ctypes.addressof(self.symbols), ctypes.addressof(dims))
        return self._parted(dims)

    def _parted(self, dims: ctypes.Array[ctypes.c_int64]) -> tuple[Shape, ...]:
        ends = accumulate(self._ranks, initial=0)
        return tuple(tuple(dims[a:b]) for a, b in pairwise(ends))


def _view(array: Array, shape: Shape) -> Array:
    count = 1
    for n in shape:
        count *= n
    return array.reshape(-1)[:count].reshape(shape)


def _afford(what: str, size: int) -> None:
    """Raise BudgetError for an absurd data-dependent size, before the system is asked for that much memory."""
    if size > processor.memory():
        raise BudgetError(
            f"infer: {what} must take at most {processor.memory()} bytes, as many as this machine has, got {size}"
        )
