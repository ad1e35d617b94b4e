"""What is emitted: kernels, the calls in order with where their buffers lie, constants, the arena.

    program mlp: arena 4096 B, scratch 0 B
      call fc1        k0(%input0, %const+0, %arena+0)   units 16
      call fc2+relu   k1(%arena+0, %const+4096, %output0)   units 8
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from codegen.loops import Expr, Kernel, Size, Var
from runtime.abi import DType


class Region(StrEnum):
    """Which memory a place lies in."""

    INPUT = "input"  # caller's tensor; `index` says which
    OUTPUT = "output"
    ARENA = "arena"  # of the request; 64-byte aligned, uninitialised at each inference
    CONSTANT = "const"  # the weights
    STATE = "state"  # of the request, kept between inferences


@dataclass(frozen=True, slots=True)
class Place:
    """`offset` bytes into a region."""

    region: Region
    index: int = 0
    offset: Size = 0


@dataclass(frozen=True, slots=True)
class Call:
    """One run of a kernel over all its units. A unit is one iteration of its parallel loops."""

    kernel: str
    args: tuple[Place, ...]
    sizes: tuple[Size, ...]
    units: Size
    layers: tuple[str, ...]  # names of the layers it computes
    work: Size = 0  # floating-point operations, for chunking and profiles
    traffic: Size = 0  # bytes read and written at least once


@dataclass(frozen=True, slots=True)
class ConstantBlock:
    """Data at `offset` of the weights; offsets are multiples of 64 and do not overlap.

    With `arrange`, what lies there is `arrange(source)`, made anew each time it is asked for: packed weights need no
    memory of their own. `size` is then its number of bytes.
    """

    offset: int
    source: NDArray[np.generic]
    arrange: Callable[[NDArray[np.generic]], NDArray[np.generic]] | None = None
    size: int = 0

    @property
    def data(self) -> NDArray[np.generic]:
        return np.ascontiguousarray(self.source) if self.arrange is None else self.arrange(self.source)

    @property
    def nbytes(self) -> int:
        return self.source.nbytes if self.arrange is None else self.size


@dataclass(frozen=True, slots=True)
class Tensor:
    """An input or output: dense, row-major. A dimension that is no int is an expression over `Program.symbols`."""

    name: str
    names: tuple[str, ...]
    dtype: DType
    shape: tuple[Size, ...]


@dataclass(frozen=True, slots=True)
class Rule:
    """Two sizes over the symbols that must be equal at run time; `text` says where and why."""

    one: Size
    other: Size
    text: str


@dataclass(frozen=True, slots=True)
class Program:
    name: str
    symbols: tuple[Var, ...]
    kernels: tuple[Kernel, ...]
    calls: tuple[Call, ...]
    constants: tuple[ConstantBlock, ...]
    constant_bytes: int
    arena_bytes: Size
    scratch_bytes: int  # for each thread
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    state_bytes: int = 0
    computed: tuple[tuple[Var, Expr], ...] = ()  # sizes by name, from the symbols and those before; kept behind them
    rules: tuple[Rule, ...] = ()
