"""Records of an instruction set, as code is made for it: `Machine`, and the `Abilities` of its instructions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field

from aot.codegen.dataclass import dataclass
from aot.runtime.abi import DType
from aot.runtime.errors import InternalError
from aot.runtime.machines import Architecture

Names = Mapping[str, Mapping[int, str]]


@dataclass(frozen=True, slots=True)
class Abilities:
    """The abilities of a target's instructions. Without a target, those that all machines have.

    `intrinsics`: LLVM's names of instructions that have no generic form, by our name of what they do and by the lanes
    of their result, see `intrinsic`.
    """

    fuses: bool = False  # multiply-adds round once
    fuses_second: bool = False  # in a * b - c * d, LLVM fuses the second product with the difference, not the first one
    keeps_nan: bool = False  # one instruction gives the larger or the smaller of two floats, and NaN if one is NaN
    rounds: bool = True  # one instruction rounds a float to an i32
    converts: frozenset[DType] = frozenset()  # short types of floats that instructions convert
    masks: bool = False  # loads of 32 or 64 bits are masked
    permutes: int = 0  # numbers of 32 bits among which one instruction chooses for each lane by an index
    permutes_bytes: int = 0  # bytes among which one instruction chooses for each byte by an index, 16 or 128
    packs_bytes: bool = False  # one instruction packs two vectors of 64 bytes, of i32 or i16, to half of their width
    multiplies_lanes: bool = False  # a multiply-add of vectors takes one lane of a factor for all lanes of the other
    dots: int = 0  # products that one instruction sums in each 32-bit lane: 4 of bytes, or 2 of i16
    multiplies_blocks: bool = False  # one instruction multiplies two rows of eight bytes by two columns of eight
    joins_bytes: bool = False  # one instruction makes words, for dots of bytes, of the bytes of four rows
    adds_pairs: bool = False  # more units add i16 than multiply them, and there are no dots of bytes
    rounds_normal: bool = False  # one instruction rounds f32 to bf16; denormal numbers it takes for zero
    sums_pairs: bool = False  # one instruction sums two products of bf16 in each 32-bit lane, and may
    sums_half: bool = False  # multiply-adds of f16 may be used; they have twice the lanes of f32
    tiles: bool = False  # tile registers sum products of bf16 and of bytes, and may be used
    intrinsics: Names = field(default_factory=dict[str, Mapping[int, str]], hash=False, compare=False)

    @property
    def converts_half(self) -> bool:
        """True if there are conversions between f16 and f32."""
        return DType.F16 in self.converts

    @property
    def signs_dots(self) -> bool:
        """True if the instructions that sum products of bytes take signed ones only."""
        return "dot_signed_bytes" in self.intrinsics

    @property
    def summed_short(self) -> frozenset[DType]:
        """Types of 16 bits with instructions that sum products, faster than of f32."""
        pairs = frozenset({DType.BF16} if self.sums_pairs else ())
        return pairs | frozenset({DType.F16} if self.sums_half else ())

    def dot_terms(self, dtype: DType) -> int:
        """Return the products of factors of a type that one instruction sums in each lane; 0 without one."""
        if dtype is DType.BF16:
            return 2 if self.sums_pairs else 0
        size = 4 // dtype.stored_bytes
        if size > self.dots or (size == 2 and "dot_pairs" not in self.intrinsics):  # aarch64 has dots of bytes only
            return 0
        return size

    def intrinsic(self, operation: str, lanes: int = 1) -> str:
        """Return LLVM's name of the instruction for an operation on vectors of `lanes` results."""
        result = self.intrinsics.get(operation, {}).get(lanes)
        if result is None:
            raise InternalError(f"emit: the target has an instruction {operation} of {lanes} lanes, got none")
        return result


@dataclass(frozen=True, slots=True)
class FlushMode:
    """LLVM IR that makes instructions take denormal numbers for zero, and that restores the mode of the thread."""

    begin: tuple[str, ...]
    end: tuple[str, ...]
    declarations: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Dispatch:
    """Query of the processor's features by a library of several levels.

    `words`: what reads a word, as a call without its result's type, and for each feature the bits that must be set in
    it. They are read in this order as %w0, %w1 and so on, but ones that no level needs only if they are in `always`.
    """

    template: str  # file of `aot.codegen.llvm.pool` that defines the called functions
    words: Mapping[str, Mapping[str, int]]
    always: frozenset[str] = frozenset()
    assembly: bool = False  # the template has instructions as text, which LLVM reads on a machine of the same kind only


@dataclass(frozen=True, slots=True)
class Machine:
    """An instruction set as code is made for it. Features have LLVM's names.

    `vectors` gives the bytes and the number of vector registers, `abilities` what instructions can do: of a processor
    with some features, and with vectors of some bytes. Both hold whatever the CPU's name is.
    """

    architecture: Architecture
    cpu: str  # LLVM's name of a processor of a level
    caches: tuple[int, int, int]  # bytes of L1, L2 and L3 that a level's schedules are made for
    base: frozenset[str]  # features that code for this machine may use even where none of its instructions needs them
    vectors: Callable[[frozenset[str]], tuple[int, int]]
    abilities: Callable[[frozenset[str], int], Abilities]
    pause: tuple[str, str]  # call of an instruction that waits for a moment, and its declaration
    dispatch: Mapping[str, Dispatch]  # by the name of a platform
    level_caches: Mapping[str, tuple[int, int, int]] = field(default_factory=dict[str, tuple[int, int, int]])
    uses: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])  # see `object.features`
    scheduled: Callable[[str], str] = str  # CPU by whose model LLVM schedules code for one of a name
    left_out: tuple[str, ...] = ()  # see `Target.left_out`
    module_flags: str = ""  # LLVM IR at the end of each module: its convention of calls
    elf_flags: int = 0  # e_flags of ELF, which all objects of a library have in common
    flush: FlushMode | None = None  # where computing with denormal numbers takes far longer than without
    fetches_near: bool = True  # lines that many rows use are prefetched into L1, not L2
    loads_operands: bool = True  # instructions of vectors take an operand from memory
    spare_registers: int = 0  # registers beside `vectors`: for sums that count the values that a step keeps
    prefetches_rows: bool = True  # registers are left for the strides of rows that a product prefetches

    @property
    def name(self) -> str:
        """`x86_64`, `aarch64`: the first part of a triple."""
        return self.architecture.name
