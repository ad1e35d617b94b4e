"""The program that is emitted: kernels, the calls in order with where their buffers lie, constants, the arena.

    program mlp: arena 4096 B, scratch 0 B
      call fc1        k0(%input0, %const+0, %arena+0)   units 16
      call fc2+relu   k1(%arena+0, %const+4096, %output0)   units 8

Control stands between calls: sizes that the calls before have computed, jumps over branches and back to loops' heads.

      call 0 nonzero    k0(%input0, %arena+64, %arena+0)
      bind v0 = i64 at %arena+0                       what follows reads %arena+64 as [v0, 2]
      call 1 slice      k1(%arena+64, %output0, v0)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from codegen.loops import Expr, Kernel, Size, Var
from runtime import abi
from runtime.abi import DType


class Region(StrEnum):
    """Memory that a place lies in."""

    INPUT = "input"  # caller's tensor; `index` says which
    OUTPUT = "output"
    ARENA = "arena"  # of the request; 64-byte aligned, uninitialised at each inference
    CONSTANT = "const"  # the weights
    STATE = "state"  # of the request, kept between inferences
    SHARED = "shared"  # lowering's name for what lies in the arena, but is touched by several blocks of control flow


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
    flushes: bool = False  # denormal numbers are taken for zero


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
    """An input or output: dense, row-major. A dimension that is no int is an expression over symbols.

    `most`: elements that an output with late sizes has at most, over symbols and capacities. `string`: the tensor of
    strings that it is a part of. `default`: bytes into the weights where the value of an input lies that is not given.
    """

    name: str
    names: tuple[str, ...]
    dtype: DType
    shape: tuple[Size, ...]
    most: Size | None = None
    string: str = ""
    default: int | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """Two sizes over the symbols that must be equal at run time; `text` says where and why."""

    one: Size
    other: Size
    text: str


@dataclass(frozen=True, slots=True)
class Late:
    """A symbol that an inference sets itself.

    With a `capacity`, memory is laid out for values from -capacity to capacity: `initial` at first, raised when one
    does not fit.
    """

    symbol: Var
    capacity: Var | None = None
    initial: int = 0


@dataclass(frozen=True, slots=True)
class Bind:
    """Before call `at`: `symbol` is the integer or boolean that lies at `place`."""

    at: int
    symbol: Var
    place: Place
    dtype: DType


@dataclass(frozen=True, slots=True)
class Let:
    """Before call `at`: `symbol` is `value`. Several in a row take effect together."""

    at: int
    symbol: Var
    value: Size


@dataclass(frozen=True, slots=True)
class Label:
    """Before call `at`: where jumps lead."""

    at: int
    name: str


@dataclass(frozen=True, slots=True)
class Jump:
    """Before call `at`: go on behind the label `to`, if `when` is not 0.

    `asks`: the inference may be cancelled here. Set it where a loop has no static bound that is small.
    """

    at: int
    to: str
    when: Size = 1
    asks: bool = False


@dataclass(frozen=True, slots=True)
class Check:
    """Before call `at`: `rule` holds, or the inference ends with an error."""

    at: int
    rule: Rule


@dataclass(frozen=True, slots=True)
class Kept:
    """A variable in the state of a request: byte `flag` begins a number, not 0 once it is set; its elements follow.

    `data`: the byte where they do; None if a dimension varies, -1 in `shape`: then behind the flag stand the byte
    where they are now, and the dimensions that vary.
    """

    name: str
    dtype: DType
    shape: tuple[int, ...]
    flag: int
    data: int | None = None


Control = Bind | Let | Check | Label | Jump


@dataclass(frozen=True, slots=True)
class Version:
    """Calls `first` to `end`, the end excluded, are for requests whose symbols have these sizes alone."""

    sizes: tuple[tuple[str, int], ...]
    first: int
    end: int


@dataclass(frozen=True, slots=True)
class Program:
    """`control`: in the order in which it runs; `at` never decreases. `rules`: over symbols that inputs set.

    `versions` of the model for certain sizes stand before the calls for all others.
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
    variables: tuple[Kept, ...] = ()
    computed: tuple[tuple[Var, Expr], ...] = ()  # sizes by name, from the symbols and those before; kept behind them
    rules: tuple[Rule, ...] = ()
    late: tuple[Late, ...] = ()
    control: tuple[Control, ...] = ()
    versions: tuple[Version, ...] = ()
    denormals: int = 0  # elements of constants that kernels take for zero
    _places: dict[str, int] = field(init=False, repr=False, compare=False)

    @property
    def places(self) -> dict[str, int]:
        """Place of each symbol of `stored`, by its name."""
        try:
            return self._places
        except AttributeError:
            object.__setattr__(self, "_places", {symbol.name: i for i, symbol in enumerate(self.stored)})
            return self._places

    @property
    def stored(self) -> tuple[Var, ...]:
        """Entries of `Request.symbols`, in order: symbols, late ones, capacities, computed sizes."""
        capacities = (x.capacity for x in self.late if x.capacity is not None)
        return (*self.symbols, *(x.symbol for x in self.late), *capacities, *(size for size, _ in self.computed))

    @property
    def cancellable(self) -> bool:
        """True if an inference may loop without a static bound: `Request.symbols` then ends in `abi.CANCEL_WORDS`."""
        return any(isinstance(entry, Jump) and entry.asks for entry in self.control)

    @property
    def words(self) -> int:
        """The number of entries of `Request.symbols`."""
        return len(self.stored) + (abi.CANCEL_WORDS if self.cancellable else 0)
