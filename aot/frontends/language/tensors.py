"""Tensors of a language model as the decoder asks for them: by the names that GGUF has, whatever the file calls them.

token_embd.weight    blk.0.attn_q.weight    blk.0.attn_q.bias    output_norm.weight
"""

from __future__ import annotations

from typing import Protocol

from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.ir.types import Array
from aot.runtime.abi import DType


def as_f32(build: Builder, array: Array, dtype: DType, name: str) -> OutPort:
    """Return a constant in the type of its file, converted to f32."""
    port = build.const(array, dtype, name)
    return port if dtype is DType.F32 else build.Convert(port, destination_type=DType.F32)


class Tensors(Protocol):
    """The tensors of a file; each may become a constant once. CorruptError for one of another shape, or none."""

    def has(self, name: str) -> bool:
        """True if there is a tensor of this name."""
        ...

    def floats(self, name: str, *shape: int) -> Array:
        """Return a small tensor as f32."""
        ...

    def vector(self, name: str, size: int) -> OutPort:
        """Return a vector as f32."""
        ...

    def bias(self, name: str, size: int, turned: int = 0, heads: int = 1) -> OutPort:
        """Return a vector whose elements lie as the rows of `matrix`."""
        ...

    def experts(self, name: str, count: int, rows: int, columns: int) -> OutPort:
        """Return the matrices of all experts as f32, [count, rows, columns]."""
        ...

    def matrix(self, name: str, rows: int, columns: int, turned: int = 0, heads: int = 1) -> OutPort:
        """Return a matrix as f32. `turned`: the first rows of each head that come in pairs, and become halves."""
        ...
