"""Tensors of a file as constants of the graph: quantised ones stay numbers and scales, so that they stay small.

n: u8[rows, blocks, 32]   ->   Reshape(Multiply(Subtract(Convert(n), z), s), [rows, columns])
"""

from __future__ import annotations

import numpy as np

from aot.frontends.gguf.blocks import plain_floats
from aot.frontends.gguf.container import Container, Stored
from aot.frontends.gguf.numbers import quantized
from aot.frontends.language.tensors import as_f32
from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.ir.inference import MAX_FOLD_ELEMENTS
from aot.ir.origin import Origin
from aot.ir.types import Array
from aot.runtime.abi import DType
from aot.runtime.errors import CorruptError


class Weights:
    """The tensors of a file; each may become a constant once."""

    def __init__(self, container: Container, build: Builder) -> None:
        self.container, self.build = container, build
        self.read: set[str] = set()

    def has(self, name: str) -> bool:
        return name in self.container.tensors

    @property
    def unread(self) -> list[str]:
        return [name for name in self.container.tensors if name not in self.read]

    def floats(self, name: str, *shape: int) -> Array:
        """Return a small tensor as f32."""
        stored = self._stored(name, shape)
        return stored.format.floats(stored.raw).reshape(shape)

    def vector(self, name: str, size: int) -> OutPort:
        return self._at(name).const(self.floats(name, size), DType.F32, name)

    def bias(self, name: str, size: int, turned: int = 0, heads: int = 1) -> OutPort:
        """Return a vector whose elements lie as the rows of `matrix`."""
        floats = self.floats(name, size)
        ordered = floats[halves_first(heads, size // heads, turned)] if turned else floats
        return self._at(name).const(ordered, DType.F32, name)

    def matrix(self, name: str, rows: int, columns: int, turned: int = 0, heads: int = 1) -> OutPort:
        """Return a matrix as f32. `turned`: the first rows of each head that come in pairs, and become halves."""
        stored, build = self._stored(name, (rows, columns)), self._at(name)
        order = halves_first(heads, rows // heads, turned) if turned else None
        if stored.format.plain is None:
            return self._compressed(build, stored, order)
        floats = plain_floats(stored.raw, stored.format.plain).reshape(rows, columns)
        return as_f32(build, floats if order is None else floats[order], stored.format.plain, name)

    def experts(self, name: str, count: int, rows: int, columns: int) -> OutPort:
        stored, build = self._stored(name, (count, rows, columns)), self._at(name)
        if stored.format.plain is None:
            return self._compressed(build, stored, None)
        floats = plain_floats(stored.raw, stored.format.plain)
        return as_f32(build, floats.reshape(count, rows, columns), stored.format.plain, name)

    def _compressed(self, build: Builder, stored: Stored, order: Array | None) -> OutPort:
        parts = quantized(stored, order)
        small = parts.numbers.size <= MAX_FOLD_ELEMENTS  # inference asks for few values
        numbers, zeros, scales = (x.array() if small else x for x in (parts.numbers, parts.zeros, parts.scales))
        whole = build.const(numbers, parts.numbers.type.dtype, stored.name)
        port = build.Convert(whole, destination_type=DType.F32)
        if parts.has_zeros:
            port = build.Subtract(port, build.const(zeros, DType.F32))
        scaled = build.Multiply(port, build.const(scales, DType.F32))
        return build.Reshape(scaled, build.const(np.array(stored.shape), DType.I64), special_zero=False)

    def _stored(self, name: str, shape: tuple[int, ...]) -> Stored:
        stored = self.container.tensors.get(name)
        file = self.container.file
        if stored is None:
            count = len(self.container.tensors)
            raise CorruptError(f"{file}: GGUF: the network must have a tensor {name!r}, got {count} others")
        if stored.shape != shape:
            raise CorruptError(f"{file}: GGUF: tensor {name!r} must be {list(shape)}, got {list(stored.shape)}")
        self.read.add(name)
        return stored

    def _at(self, name: str) -> Builder:
        return Builder(self.build.graph, Origin((name,), self.container.file))


def halves_first(heads: int, size: int, turned: int) -> Array:
    """Return the order of rows that puts the first of each pair before all second ones, in each head."""
    first = np.concatenate([np.arange(0, turned, 2), np.arange(1, turned, 2), np.arange(turned, size)])
    return (np.arange(heads)[:, None] * size + first).reshape(-1)
