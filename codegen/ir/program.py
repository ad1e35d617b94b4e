"""The program that is emitted: kernels, calls in order with the addresses of their buffers, constants, the arena.

    program mlp: arena 4096 B, scratch 0 B
      call fc1        k0(%input0, %const+0, %arena+0)   units 16
      call fc2+relu   k1(%arena+0, %const+4096, %output0)   units 8

Control entries stand between calls: sizes that earlier calls have computed, jumps over branches and back to loop heads.

      call 0 nonzero    k0(%input0, %arena+64, %arena+0)
      bind v0 = i64 at %arena+0                       later calls read %arena+64 as [v0, 2]
      call 1 slice      k1(%arena+64, %output0, v0)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field
from enum import StrEnum
from functools import partial

import numpy as np
from numpy.typing import NDArray

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.loops import Expr, Kernel, Size, Var
from aot.runtime import abi
from aot.runtime.abi import DType
from aot.runtime.arrays.pages import release
from aot.runtime.loading.manifest import CacheInfo


class MemoryRegion(StrEnum):
    """Memory that an address is relative to."""

    INPUT = "input"  # caller's tensor; `index` says which
    OUTPUT = "output"
    ARENA = "arena"  # of the request; 64-byte aligned, uninitialised at each inference
    CONSTANT = "const"  # the weights
    STATE = "state"  # of the request, kept between inferences
    SHARED = "shared"  # in lowering: memory of the arena that several blocks of control flow share


@dataclass(frozen=True, slots=True)
class Address:
    """An address: `offset` bytes into a region."""

    region: MemoryRegion
    index: int = 0
    offset: Size = 0


@dataclass(frozen=True, slots=True)
class Call:
    """One run of a kernel over all its units. A unit is one iteration of its parallel loops."""

    kernel: str
    args: tuple[Address, ...]
    sizes: tuple[Size, ...]
    layers: tuple[str, ...]  # names of the layers that it computes
    work: Size = 0  # floating-point operations, for chunking and profiles
    traffic: Size = 0  # bytes read and written at least once
    flushes: bool = False  # denormals are flushed to zero


@dataclass(frozen=True, slots=True)
class ConstantBlock:
    """Data at `offset` of the weights; offsets are multiples of 64 and do not overlap.

    With `make`, which returns a function for each piece, the data are made anew at each access, so that packed weights
    need no memory of their own; `size` is then their number of bytes.
    """

    offset: int
    source: NDArray[np.generic]
    make: Callable[[], list[Callable[[], NDArray[np.generic]]]] | None = None
    size: int = 0

    def pieces(self) -> Iterator[NDArray[np.uint8]]:
        """Yield the bytes of the data in order; each piece may be freed before the next one is made."""
        if self.make is None:
            yield _bytes(self.source)
            release(self.source)
        else:
            yield from (make() for make in self.makers())

    def makers(self) -> list[Callable[[], NDArray[np.uint8]]]:
        """Return functions that make the bytes of the pieces, in order; they may run at the same time."""
        return [] if self.make is None else [partial(_bytes_of, make) for make in self.make()]

    @property
    def nbytes(self) -> int:
        return self.source.nbytes if self.make is None else self.size


def _bytes_of(make: Callable[[], NDArray[np.generic]]) -> NDArray[np.uint8]:
    return _bytes(make())


def _bytes(array: NDArray[np.generic]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


@dataclass(frozen=True, slots=True)
class Tensor:
    """An input or output: dense, row-major. A dynamic dimension is an expression over symbols.

    `most`: upper bound of the elements of an output with data-dependent sizes, over symbols and capacities. `string`:
    the tensor of strings that it is a part of. `default`: offset in the weights, in bytes, of the default value of an
    input.
    """

    name: str
    names: tuple[str, ...]
    dtype: DType
    shape: tuple[Size, ...]
    most: Size | None = None
    string: str = ""
    default: int | None = None


@dataclass(frozen=True, slots=True)
class SizeConstraint:
    """Two sizes over the symbols that must be equal at run time; `text`: the rule and its layer, for errors."""

    one: Size
    other: Size
    text: str


@dataclass(frozen=True, slots=True)
class DataDependentSize:
    """A data-dependent size: a symbol, and where the inference computes its value."""

    symbol: Var
    capacity: Var | None = None
    initial: int = 0


@dataclass(frozen=True, slots=True)
class Bind:
    """Before call `at`, `symbol` is set to the integer or boolean at `place`."""

    at: int
    symbol: Var
    place: Address
    dtype: DType


@dataclass(frozen=True, slots=True)
class Let:
    """Before call `at`, `symbol` is set to `value`. Several in a row take effect together."""

    at: int
    symbol: Var
    value: Size


@dataclass(frozen=True, slots=True)
class Label:
    """A target of jumps, before call `at`."""

    at: int
    name: str


@dataclass(frozen=True, slots=True)
class Jump:
    """Before call `at`, control continues after the label `to` if `when` is not 0.

    `asks`: the inference may be cancelled here, as in loops without a small static bound.
    """

    at: int
    to: str
    when: Size = 1
    asks: bool = False


@dataclass(frozen=True, slots=True)
class Check:
    """Before call `at`, the inference ends with an error unless `rule` holds."""

    at: int
    rule: SizeConstraint


@dataclass(frozen=True, slots=True)
class StateVariable:
    """A variable in the state of a request: a flag at byte `flag`, nonzero once the variable is set, then its elements.

    `data`: byte where the elements begin; None if a dimension varies (-1 in `shape`): then the byte where they begin
    now and the dimensions that vary are stored after the flag. `cache`: where it lies instead.
    """

    name: str
    dtype: DType
    shape: tuple[int, ...]
    flag: int
    data: int | None = None
    cache: CacheInfo | None = None


Control = Bind | Let | Check | Label | Jump


@dataclass(frozen=True, slots=True)
class Version:
    """Calls `first` to `end`, excluded: they run only for requests with these `sizes` of symbols."""

    sizes: tuple[tuple[str, int], ...]
    first: int
    end: int


@dataclass(frozen=True, slots=True)
class Program:
    """A compiled model. `control` is in program order: `at` never decreases. `rules` are over symbols that inputs set.

    The calls of `versions`, for certain sizes, precede those of the general version.
    """

    name: str
    symbols: tuple[Var, ...]
    kernels: tuple[Kernel, ...]
    calls: tuple[Call, ...]
    constants: tuple[ConstantBlock, ...]
    constant_bytes: int
    arena_bytes: Size
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    state_bytes: Size = 0
    variables: tuple[StateVariable, ...] = ()
    computed: tuple[tuple[Var, Expr], ...] = ()  # sizes over symbols and earlier ones; stored after the symbols
    rules: tuple[SizeConstraint, ...] = ()
    late: tuple[DataDependentSize, ...] = ()
    control: tuple[Control, ...] = ()
    versions: tuple[Version, ...] = ()
    denormals: int = 0  # elements of constants that kernels flush to zero
    in_floats: tuple[tuple[str, tuple[str, ...]], ...] = ()  # products of f32 despite `--activations int8`: why, layers
    _places: dict[str, int] = field(init=False, repr=False, compare=False)

    @property
    def places(self) -> dict[str, int]:
        """Index of each symbol in `stored`, by its name."""
        try:
            return self._places
        except AttributeError:
            object.__setattr__(self, "_places", {symbol.name: i for i, symbol in enumerate(self.stored)})
            return self._places

    @property
    def stored(self) -> tuple[Var, ...]:
        """Entries of `Request.symbols`, in order: symbols, data-dependent ones, capacities, computed sizes."""
        capacities = (x.capacity for x in self.late if x.capacity is not None)
        return (*self.symbols, *(x.symbol for x in self.late), *capacities, *(size for size, _ in self.computed))

    @property
    def is_cancellable(self) -> bool:
        """True if an inference may loop without a static bound: `Request.symbols` then ends in `abi.CANCEL_WORDS`."""
        return any(isinstance(command, Jump) and command.asks for command in self.control)

    @property
    def words(self) -> int:
        """Number of entries of `Request.symbols`."""
        return len(self.stored) + (abi.CANCEL_WORDS if self.is_cancellable else 0)
