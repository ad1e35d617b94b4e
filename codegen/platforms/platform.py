"""The record of an operating system, as code and files are made for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from enum import StrEnum

from aot.codegen.dataclass import dataclass
from aot.codegen.machines import Machine
from aot.runtime.errors import UnsupportedError


class Format(StrEnum):
    """Formats of libraries; objects are ELF on every system."""

    ELF = "ELF"
    PE = "PE"
    MACH_O = "Mach-O"
    WASM = "WebAssembly"


@dataclass(frozen=True, slots=True)
class Platform:
    """An operating system with its C library, the format of its files and the linkers for it.

    `pool`: files of `aot.codegen.llvm.pool` with the functions that a thread pool asks of the system: `now`,
    `sleep`, `rouse`, `here` and `avoid`, and the C library's that it calls, declared, or defined where there are none.
    `numbers` are those of its ABI in the text of the pool: sizes, kinds of clocks. LLVM cannot check them.
    """

    name: str
    suffix: str  # the part of triples after the machine's name
    library: str  # suffix of the names of libraries
    machines: tuple[str, ...]  # names of those that libraries can be made for
    pool: tuple[str, ...]
    numbers: Mapping[str, int]
    imports: Mapping[str, tuple[str, ...]]  # by the names of libraries: their functions that a model may call
    calls: Mapping[str, Mapping[str, int]]  # numbers of calls of the system in the text of the pool, by machine
    # By machine: a call that requests tile registers and returns 0 if the process may use them.
    tiles: Mapping[str, str]
    pool_with: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])  # by a feature
    link_options: tuple[str, ...] = ()
    linkers: tuple[str, ...] = ()  # programs that link for the machine at hand
    cross_linkers: tuple[str, ...] = ()  # those that link for another one, `{machine}`
    prefix: str = ""  # of the names of targets
    format: Format = Format.ELF
    scarce_memory: bool = False  # a process has few GB of memory, of which that counts, too, which is not written
    external_weights: bool = True  # loaders map weights from a file of their own
    environment: str = ""  # part of LLVM's triples after `suffix`, where objects are ELF files and libraries are not
    pages: Mapping[str, int] = field(default_factory=dict[str, int])  # by machine: bytes of a kernel's largest
    code: Mapping[str, Mapping[str, bytes]] = field(default_factory=dict[str, Mapping[str, bytes]])  # see `code_of`

    @property
    def needs_linker(self) -> bool:
        """False if `aot.codegen.llvm.linking.image_writers` makes libraries."""
        return self.format is Format.ELF

    @property
    def functions(self) -> tuple[str, ...]:
        """Functions of all libraries that a model may call."""
        return tuple(name for names in self.imports.values() for name in names)

    def triple(self, machine: str) -> str:
        """Return LLVM's triple of a machine's name."""
        return f"{machine}-{self.suffix}"

    def pool_of(self, features: Iterable[str]) -> tuple[str, ...]:
        """Return the files of the pool for code that uses `features`."""
        return next((files for feature, files in self.pool_with.items() if feature in features), self.pool)

    def numbers_of(self, machine: Machine) -> dict[str, int]:
        """Return the numbers in the text of the pool; UnsupportedError for a machine that none are known for."""
        if machine.name not in self.machines:
            machines = ", ".join(self.machines)
            raise UnsupportedError(f"target: the machine must be one of {machines} on {self.name}, got {machine.name}")
        return {**self.numbers, **{name: known[machine.name] for name, known in self.calls.items()}}

    def code_of(self, machine: Machine) -> Mapping[str, bytes]:
        """Return the machine code of functions that LLVM calls and that no library exports, by name."""
        return self.code.get(machine.name, {})

    def has_level(self, machine: Machine, features: tuple[str, ...]) -> bool:
        """True if the system lets code for a machine use `features`: it must be asked for tile registers."""
        tiles = not set(machine.architecture.matrix).isdisjoint(features)
        return machine.name in self.machines and (not tiles or machine.name in self.tiles)
