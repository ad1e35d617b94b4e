"""The record of an operating system, as code and files are made for it."""

from __future__ import annotations

from collections.abc import Mapping

from aot.codegen.dataclass import dataclass
from aot.codegen.machines import Machine
from aot.runtime.errors import UnsupportedError


@dataclass(frozen=True, slots=True)
class Platform:
    """An operating system with its C library, its object format and the linkers for it.

    `pool`: the file of `aot.codegen.llvm.pool` with the functions that a thread pool asks of the system: `now`,
    `sleep`, `rouse`, `here` and `avoid`, and the C library's that it calls, declared, or defined where there are none.
    `numbers` are those of its ABI in the text of the pool: sizes, kinds of clocks. LLVM cannot check them.
    """

    name: str
    suffix: str  # of triples, behind the machine's name
    library: str  # suffix of the names of libraries
    pool: str
    numbers: Mapping[str, int]
    calls: Mapping[str, Mapping[str, int]]  # numbers of calls of the system in the text of the pool, by machine
    tiles: Mapping[str, str]  # by machine: a call that asks for tile registers and gives 0 if the process may use them
    libc: tuple[str, ...]  # functions of the C library that a model may call
    libc_file: str  # name by which libraries ask for it
    link_options: tuple[str, ...]
    linkers: tuple[str, ...]  # programs that link for the machine at hand
    cross_linkers: tuple[str, ...]  # those that link for another one, `{machine}`

    def triple(self, machine: str) -> str:
        """Return LLVM's triple of a machine's name."""
        return f"{machine}-{self.suffix}"

    def numbers_of(self, machine: Machine) -> dict[str, int]:
        """Return the numbers in the text of the pool; UnsupportedError for a machine that none are known for."""
        if any(machine.name not in known for known in self.calls.values()):
            machines = ", ".join(next(iter(self.calls.values())))
            raise UnsupportedError(f"target: the machine is one of {machines} on {self.name}, got {machine.name}")
        return {**self.numbers, **{name: known[machine.name] for name, known in self.calls.items()}}
