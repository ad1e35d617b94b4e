"""The machine that code is made for: instruction set, vector length, caches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache

from aot.codegen.dataclass import dataclass
from aot.codegen.machines import MACHINES, Abilities, Machine, machine_of
from aot.codegen.platforms import PLATFORMS, Platform, platform_of
from aot.runtime.abi import DType
from aot.runtime.errors import UsageError

CORES = 2  # cores that share an inference, where neither the user nor this machine says how many
_LONGEST = 64  # bytes of the longest vectors of any target
_MANY_REGISTERS = 32  # vector registers: a register tile and its operands fit without spilling
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
    keeps_sum_order: bool = False  # no choice that is this target's alone changes the order of sums: for bf16
    fast_math: bool = False  # sums of products of bf16 and f16 may have the order and the type that are fastest here
    compact_code: bool = False  # kernels have little code, which compiles fast and runs slower
    is_own: bool = False  # this machine's: code requires only the features that it uses, see `using`

    @staticmethod
    def parse(name: str, cores: int = CORES) -> Target:
        """Return the target of a name: `x86-64-v3`, `aarch64`, `windows-x86-64-v3`; UsageError for others.

        `aot.codegen.llvm.host.parse_target` knows `native`, too.
        """
        known = targets_by_name()
        if name not in known:
            raise UsageError(f"target: must be one of {', '.join(('native', *known))}, got {name!r}")
        platform, machine, level = known[name]
        features = machine.architecture.levels[level]
        caches = machine.level_caches.get(level, machine.caches)
        target = Target(
            platform.triple(machine.name), machine.cpu, features, *machine.vectors(frozenset(features)), *caches, cores
        )
        return replace(target, tiles=not set(machine.architecture.matrix).isdisjoint(features))

    @staticmethod
    def native(host: Host) -> Target:
        """Return a target for `host` that uses only features that the loader can check, so that it loads there.

        A CPU's name implies features that a virtual machine may hide, so absent ones are switched off.
        UnsupportedError for a machine that code cannot be made for.
        """
        features = tuple(f for f, on in host.features.items() if on and f not in host.unreported)
        without = tuple(f for f in host.features if f not in features)
        vectors = machine_of(host.triple).vectors(frozenset(features))
        return Target(host.triple, host.cpu, features, *vectors, *host.caches, host.cores, without, is_own=True)

    def using(self, features: Iterable[str]) -> Target:
        """Return the target of code that uses `features`, if they are there, beside those of all code.

        A target that is not this machine has the features of its name.
        """
        if not self.is_own:
            return self
        features_used = self.machine.base | set(features)
        off = tuple(f for f in self.features if f not in features_used and not f.startswith(_TUNING))
        return replace(self, features=tuple(f for f in self.features if f not in off), without=(*self.without, *off))

    def lanes(self, dtype: DType) -> int:
        """Return the number of elements of a compute type in a vector."""
        return max(1, self.lanes_bytes // dtype.compute.bytes)

    @staticmethod
    def sum_lanes(dtype: DType) -> int:
        """Return the number of partial sums, of a compute type, that a vector of them has: the same on all targets."""
        return _LONGEST // dtype.compute.bytes

    @property
    def machine(self) -> Machine:
        """Instruction set; UnsupportedError for one that code cannot be made for."""
        return machine_of(self.triple)

    @property
    def platform(self) -> Platform:
        """Operating system; UnsupportedError for one that code cannot be made for."""
        return platform_of(self.triple)

    @property
    def abilities(self) -> Abilities:
        """The abilities of instructions that the options of the compilation allow."""
        return _abilities(self)

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
        return self.near_l3 or self.machine.fetches_near

    @property
    def converts_half_aside(self) -> bool:
        """True if f16 is converted by units that multiply-adds leave free, as in AMD's Zen; Intel's share them."""
        return self.abilities.converts_half and self.cpu.startswith("znver")

    @property
    def llvm_cpu(self) -> str:
        """LLVM's scheduling model: the name of a CPU."""
        return self.machine.scheduled(self.cpu)

    @property
    def llvm_features(self) -> tuple[str, ...]:
        """Features as LLVM takes them."""
        return (*(f"+{f}" for f in self.features), *(f"-{f}" for f in self.without))

    @property
    def left_out(self) -> tuple[str, ...]:
        """Switches that leave passes of LLVM's code generator out for loops of vectors, which are as fast without.

        With 16 registers more values spill, which takes up to 3 % of the run time.
        """
        return self.machine.left_out if self.registers >= _MANY_REGISTERS or self.compact_code else ()

    @property
    def carries_pointers(self) -> bool:
        """True if innermost loops carry pointers: where LLVM's loop strength reduction runs, it chooses them."""
        return bool(self.left_out)

    def without_tiles(self) -> Target:
        """Return the same machine without tile registers."""
        prefix = self.machine.architecture.matrix_prefix
        off = tuple(f for f in self.features if prefix and f.startswith(prefix))
        return replace(self, features=tuple(f for f in self.features if f not in off), without=(*self.without, *off))


@lru_cache(maxsize=1)
def targets_by_name() -> dict[str, tuple[Platform, Machine, str]]:
    """Return the names of targets with platform, machine and level.

    Short ones follow: `aarch64`, and `windows-v3` where the system's name is part of them.
    """
    full: dict[str, tuple[Platform, Machine, str]] = {}
    short: dict[str, tuple[Platform, Machine, str]] = {}
    for platform in PLATFORMS.values():
        for machine in MACHINES.values():
            made_for = machine.architecture
            names = [n for n in made_for.names_of_levels() if platform.has_level(machine, made_for.features_of(n))]
            for name in names:
                entry = platform, machine, made_for.level_of(name)
                if name.startswith(platform.prefix):
                    full[name] = entry
                else:
                    full[platform.prefix + name] = short[platform.prefix + name.removeprefix(made_for.prefix)] = entry
    return full | short


@lru_cache(maxsize=1 << 6)
def _abilities(target: Target) -> Abilities:
    abilities = target.machine.abilities(frozenset(target.features), target.lanes_bytes)
    tiles = target.tiles and abilities.tiles
    pairs = target.fast_math and abilities.rounds_normal and not tiles  # nothing is faster here
    converts = abilities.converts | frozenset({DType.BF16} if pairs else ())  # which loses denormals, as fast sums may
    halves = target.fast_math and abilities.sums_half
    return replace(abilities, tiles=tiles, sums_pairs=pairs, sums_half=halves, converts=converts)
