"""The machine that code is made for: instruction set, vector length, caches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from aot.codegen.dataclass import dataclass
from aot.runtime.abi import DType
from aot.runtime.errors import UsageError
from aot.runtime.levels import AMX, LEVELS

_SERVER_CACHES = (48 << 10, 2 << 20, 4 << 20)  # bytes of L1 and L2 of the first processors with tile registers
# Features of a machine that code may use where nothing in it asks for them.
_BASE = {
    "x86_64": frozenset({*LEVELS["x86-64-v4"], "64bit", "evex512"}),
    "aarch64": frozenset({"neon", "fp-armv8", "lse"}),
}
CORES = 2  # that share an inference, where neither the user nor this machine says how many
_LONGEST = 64  # bytes of the longest vectors of any target
# Prefixes of tuning flags, which LLVM lists among the features.
_TUNING = (
    "fast-",
    "slow-",
    "prefer-",
    "tuning",
    "false-deps",
    "idivl-",
    "idivq-",
    "branchfusion",
    "macrofusion",
    "64bit",
)


@dataclass(frozen=True, slots=True)
class Host:
    """Facts about the machine that a process runs on, as `aot.codegen.llvm.host` reads them."""

    triple: str
    cpu: str
    features: Mapping[str, bool]  # whether processor and system have each feature that LLVM knows
    unreported: frozenset[str]  # features that the system does not report, so that the loader could not check them
    caches: tuple[int, int, int]  # bytes of L1, L2 and L3
    cores: int


@dataclass(frozen=True, slots=True)
class Target:
    """A machine: `registers` vector registers of `lanes_bytes` bytes; `l1`, `l2`, `l3` are data caches in bytes.

    `cores`: for which schedules have units enough; code runs with any number of threads.
    """

    triple: str
    cpu: str
    features: tuple[str, ...]
    lanes_bytes: int
    registers: int
    l1: int
    l2: int
    l3: int
    cores: int
    without: tuple[str, ...] = ()  # features that the CPU's name implies, and this machine lacks
    tiles: bool = False  # tile registers may be used: the system must allow that when a library is loaded
    same_sums: bool = False  # sums run in an order that does not depend on the length of vectors
    fast_math: bool = False  # sums of products of bf16 may have the order that is fastest here
    is_own: bool = False  # this machine's: of its features, code asks for those that it uses, see `using`

    @staticmethod
    def parse(name: str, cores: int = CORES) -> Target:
        """Return the target `x86-64-v2`, `-v3`, `-v4`, `-v4-bf16`, `-v4-amx` or `aarch64`; UsageError for others.

        `aot.codegen.llvm.host.parse_target` knows `native`, too.
        """
        if name == "aarch64":
            caches = (64 << 10, 512 << 10, 4 << 20)
            return Target("aarch64-unknown-linux-gnu", "generic", ("neon",), 16, 32, *caches, cores)
        if name not in LEVELS:
            known = ", ".join(("native", *LEVELS, "aarch64"))
            raise UsageError(f"target: one of {known}, got {name!r}")
        features = LEVELS[name]
        caches = _SERVER_CACHES if "amx-tile" in features else (32 << 10, 512 << 10, 4 << 20)
        return replace(_x86("x86-64", features, caches, cores), tiles="amx-tile" in features)

    @staticmethod
    def native(host: Host) -> Target:
        """Return a target for `host` that uses only features that the loader can check, so that it loads there.

        A CPU's name implies features that a virtual machine may hide, so absent ones are switched off.
        """
        features = tuple(f for f, on in host.features.items() if on and f not in host.unreported)
        without = tuple(f for f in host.features if f not in features)
        if host.triple.startswith("x86_64"):
            return replace(_x86(host.cpu, features, host.caches, host.cores, without), is_own=True)
        return Target(host.triple, host.cpu, features, 16, 32, *host.caches, host.cores, without, is_own=True)

    def using(self, features: Iterable[str]) -> Target:
        """Return the target of code that uses `features`, if they are there, beside those of all code.

        A target that is not this machine has the features of its name.
        """
        if not self.is_own:
            return self
        kept = _BASE.get(self.machine, frozenset()) | set(features)
        off = tuple(f for f in self.features if f not in kept and not f.startswith(_TUNING))
        return replace(self, features=tuple(f for f in self.features if f not in off), without=(*self.without, *off))

    def lanes(self, dtype: DType) -> int:
        """Return the number of elements of a compute type in a vector."""
        return max(1, self.lanes_bytes // dtype.compute.bytes)

    def sum_lanes(self, dtype: DType) -> int:
        """Return the number of partial sums, of a compute type, that a vector of them has."""
        return max(1, (_LONGEST if self.same_sums else self.lanes_bytes) // dtype.compute.bytes)

    @property
    def machine(self) -> str:
        """`x86_64` or `aarch64`."""
        return self.triple.split("-", 1)[0]

    @property
    def isa_features(self) -> tuple[str, ...]:
        """Features that a machine must have to run the code; never tuning flags."""
        return tuple(f for f in self.features if not f.startswith(_TUNING))

    @property
    def near_l3(self) -> bool:
        """True if few cores share the L3, and it runs at their clock and is nearly as fast as L2, as in AMD's Zen."""
        return self.cpu.startswith("znver")

    @property
    def fetches_from_l3(self) -> bool:
        """True if prefetching makes a sequence from L3 arrive sooner, as on Zen 5; on Zen 4, a quarter later."""
        return self.cpu == "znver5"

    @property
    def fetches_near(self) -> bool:
        """True if lines that many rows use are prefetched into L1, not L2: on Zen 1 to 3 % faster.

        With a far L3, more lines are in flight than the first-level cache has room to wait for.
        """
        return self.near_l3 or self.machine != "x86_64"

    @property
    def converts_half_aside(self) -> bool:
        """True if f16 is converted by units that multiply-adds leave free, as in AMD's Zen; Intel's share them."""
        return self.converts_half and self.cpu.startswith("znver")

    @property
    def llvm_cpu(self) -> str:
        """CPU by whose model LLVM schedules: never Intel's, with which some register tiles spill (LLVM 22)."""
        return self.cpu if self.machine != "x86_64" or self.cpu.startswith("znver") else "x86-64"

    @property
    def llvm_features(self) -> tuple[str, ...]:
        """Features as LLVM takes them."""
        return (*(f"+{f}" for f in self.features), *(f"-{f}" for f in self.without))

    @property
    def converts_half(self) -> bool:
        """True if there are conversions between f16 and f32."""
        return "f16c" in self.features or self.machine == "aarch64"

    @property
    def converts(self) -> frozenset[DType]:
        """Short types of floats that instructions convert; those of bf16 lose denormals, as fast sums may."""
        found = {DType.F16: self.converts_half, DType.BF16: self.sums_pairs}
        return frozenset(dtype for dtype, on in found.items() if on)

    @property
    def dots(self) -> int:
        """Products that one instruction sums in each 32-bit lane: 4 of bytes, 2 of i16, or 0 without one."""
        if "avxvnni" in self.features or {"avx512vnni", "avx512vl"} <= set(self.features):
            return 4
        return 2 if self.machine == "x86_64" else 0

    @property
    def joins_bytes(self) -> bool:
        """True if there are dots of bytes, and words of them are made of bytes of four rows by one instruction."""
        return self.dots == 4 and self.lanes_bytes == _LONGEST and "avx512vbmi" in self.features

    @property
    def adds_pairs(self) -> bool:
        """True if additions of i16 may take the place of multiplications: more units add, and no dots of bytes."""
        return self.dots == 2 and "avx2" in self.features

    @property
    def sums_pairs(self) -> bool:
        """True if one instruction sums two products of bf16 in each 32-bit lane, and may: nothing is faster here."""
        return self.fast_math and not self.has_tiles and self.rounds_normal

    @property
    def rounds_normal(self) -> bool:
        """True if one instruction rounds f32 to bf16; denormal numbers it takes for zero."""
        return {"avx512bf16", "avx512vl"} <= set(self.features)

    def dot_terms(self, dtype: DType) -> int:
        """Return the products of factors of a type that one instruction sums in each lane; 0 without one."""
        if dtype is DType.BF16:
            return 2 if self.sums_pairs else 0
        size = 4 // dtype.stored_bytes
        return size if size <= self.dots else 0

    def without_tiles(self) -> Target:
        """Return the same machine without tile registers."""
        off = tuple(f for f in self.features if f.startswith("amx-"))
        return replace(self, features=tuple(f for f in self.features if f not in off), without=(*self.without, *off))

    @property
    def has_tiles(self) -> bool:
        """True if tile registers sum products of bf16 and of bytes."""
        return self.tiles and set(AMX) <= set(self.features)

    @property
    def fuses(self) -> bool:
        """True if there are multiply-adds that round once."""
        return "fma" in self.features or self.machine == "aarch64"

    @property
    def permutes(self) -> int:
        """Numbers of 32 bits among which one instruction chooses for each lane by an index; 0 without one."""
        return self.lanes_bytes // 4 if "avx2" in self.features else 0

    @property
    def packs_bytes(self) -> bool:
        """True if one instruction packs two vectors of 64 bytes, of i32 or i16, to half of their width."""
        return "avx512bw" in self.features and self.lanes_bytes == _LONGEST

    @property
    def permutes_bytes(self) -> int:
        """Bytes among which one instruction chooses for each byte by an index, 16 or 128; 0 without one."""
        wide = "avx512vbmi" in self.features and self.lanes_bytes == _LONGEST
        return 128 if wide else 16 if "avx2" in self.features else 0

    @property
    def masks(self) -> bool:
        """True if there are masked loads of 32 or 64 bits."""
        return "avx2" in self.features


def _x86(
    cpu: str, features: tuple[str, ...], caches: tuple[int, int, int], cores: int, without: tuple[str, ...] = ()
) -> Target:
    wide = 64 if {"avx512f", "avx512vl", "avx512dq", "avx512bw"} <= set(features) else 32 if "avx2" in features else 16
    registers = 32 if wide == 64 else 16
    return Target("x86_64-unknown-linux-gnu", cpu, features, wide, registers, *caches, cores, without)
