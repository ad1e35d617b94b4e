"""The record of an instruction set: everything that loading code for it must know."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Architecture:
    """An instruction set. Features have LLVM's names, unless they are said to have the kernel's.

    `levels`, lowest first: the features that code for a target of that name may use; names begin with `prefix`, which
    is left out where several are given. `aliases`: other names of the machine, as systems tell them.
    """

    name: str  # as Linux has it, and as a triple begins
    elf: int  # e_machine of ELF
    prefix: str
    levels: Mapping[str, tuple[str, ...]]
    kernel_names: Mapping[str, str]  # of features whose names of LLVM and of the kernel differ by more than punctuation
    reported: frozenset[str]  # features that the kernel reports
    short_names: Mapping[str, str] = field(default_factory=dict[str, str])  # other names of levels
    aliases: tuple[str, ...] = ()
    # Features that only systems use: compilers do not use them on their own, and the kernel may hide them.
    unused: frozenset[str] = frozenset()
    # Features of tile registers that code may use, which the system gives to processes that ask for them; the names of
    # all that there are begin with `matrix_prefix`.
    matrix: tuple[str, ...] = ()
    matrix_prefix: str = ""

    def names_of_levels(self) -> tuple[str, ...]:
        """Return the names of levels, short ones after the others."""
        return (*self.levels, *self.short_names)

    def level_of(self, name: str) -> str:
        """Return the full name of a level; its name may be short, or lack the prefix. Other names get a prefix."""
        full = self.short_names.get(name, name)
        return full if full in self.levels else self.prefix + full

    def features_of(self, name: str) -> tuple[str, ...]:
        """Return the features that a level has; its name may be short."""
        return self.levels[self.level_of(name)]

    def needed(self, features: Iterable[str]) -> list[str]:
        """Return those of `features`, as a target lists them, that code may use."""
        names = (feature.removeprefix("+") for feature in features)
        return [feature for feature in names if not feature.startswith("-") and feature not in self.unused]

    def missing(self, features: Iterable[str], flags: frozenset[str]) -> list[str]:
        """Return the `features` that are missing among `flags`, in the kernel's names."""
        return [feature for feature in self.needed(features) if self._kernel_name(feature) not in flags]

    def levels_that_run(self, features: Iterable[str]) -> list[str]:
        """Return the levels that have all `features`, lowest first."""
        needed = set(self.needed(features))
        return [name for name, own in self.levels.items() if needed <= set(own)]

    def nearest_level(self, features: Iterable[str]) -> tuple[str, list[str]]:
        """Return the level that lacks the fewest of `features`, and those.

        The lowest of several; one with tile registers only if they are among the features.
        """
        needed = self.needed(features)
        tiles = not set(self.matrix).isdisjoint(needed)
        levels = {name: own for name, own in self.levels.items() if tiles or set(self.matrix).isdisjoint(own)}
        beyond = {name: [feature for feature in needed if feature not in own] for name, own in levels.items()}
        name = min(beyond, key=lambda level: len(beyond[level]))
        return name, beyond[name]

    def _kernel_name(self, feature: str) -> str:
        return self.kernel_names.get(feature, feature.replace(".", "_").replace("-", "_"))
