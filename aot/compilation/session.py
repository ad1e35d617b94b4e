"""A session: all inputs of the stages of one compilation besides the value of the stage before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod
from pathlib import Path

from aot.codegen.dataclass import dataclass
from aot.codegen.llvm.host import parse_target
from aot.codegen.llvm.levels import names_of
from aot.codegen.llvm.object.parts import Parts
from aot.codegen.platforms import platform_named
from aot.codegen.target import Target
from aot.compilation.implied_precision import ImpliedPrecision
from aot.compilation.library_state import LibraryState
from aot.compilation.specialise import SizesByName
from aot.frontends import framework_of
from aot.ir.graph import Graph
from aot.lowering.context import Context
from aot.options import CompileOptions
from aot.options.derived import with_environment
from aot.options.rules import AUTO, EXACT, ROUNDED
from aot.precision import BF16, precision_of
from aot.runtime.atomic import naming
from aot.runtime.errors import UnsupportedError
from aot.runtime.machine import refused_tiles


@dataclass(frozen=True, slots=True)
class Session:
    """The options of a compilation, the library that it is a part of, and its target, of several the highest."""

    options: CompileOptions
    library: LibraryState
    target: Target

    @staticmethod
    def of(model: str | Path | Graph, options: CompileOptions) -> Session:
        """Return the session of a whole library. UnsupportedError for external weights of several targets."""
        options = with_environment(options)
        library = LibraryState(options, framework_of(model))
        if options.external_weights and names_of(options.target)[1:]:
            raise UnsupportedError(f"target: external weights need one target, got {options.target}")
        if options.external_weights and not platform_named(options.target).external_weights:
            systems = "Linux, Android and WebAssembly"
            raise UnsupportedError(f"target: external weights are supported for {systems} alone, got {options.target}")
        return Session(options, library, _target(options))

    def at_sizes(self, sizes: SizesByName) -> Session:
        """Return the session of the version for these sizes."""
        dims = (*self.options.dims, *((name, size, size) for name, size in sizes))
        changed = replace(self.options, specialise=(), dims=dims, tune=self.tuning_share, save_temps=None)
        return replace(self, options=changed)

    def at_level(self, name: str) -> Session:
        """Return the session of one of the targets."""
        options = replace(self.options, target=name, save_temps=None)
        return replace(self, options=options, target=_target(options))

    def with_types(self, implied: ImpliedPrecision) -> Session:
        """Return the session with the types of data and of layers that weights ask for and options leave to them."""
        options = self.options
        if options.activations == AUTO and implied.quantizes_activations:
            return replace(self, options=replace(options, activations=ROUNDED))
        decided = options.precision is not None or options.activations == EXACT or options.weights is not None
        if decided or not implied.uses_bf16 or options.tune is not None or self.levels[1:]:
            return self
        short = _short(options)
        return self if short is None else replace(self, options=short, target=_target(short))

    @property
    def levels(self) -> tuple[str, ...]:
        """Return the names of the targets, lowest first."""
        return names_of(self.options.target)

    @property
    def computes_in_f32(self) -> bool:
        """True if all layers compute in f32."""
        return precision_of(self.options.precision).computes_in_f32

    @property
    def context(self) -> Context:
        return Context.of(self.options, self.target)

    def parts(self) -> Parts | None:
        """Return the code for this target that is being compiled: at first the thread pool's, then kernels'.

        None where all of it waits until the program is made.
        """
        return self.library.parts(self.target, self.options.level)

    @property
    def tuning_share(self) -> float | None:
        """Return the seconds of tuning for each version; None without tuning."""
        return None if self.options.tune is None else self.options.tune / self.versions

    @property
    def versions(self) -> int:
        """Return the number of versions: the general one and those for certain sizes."""
        counts = [len(sizes) for _, sizes in self.options.specialise]
        return 1 + prod(counts) if counts else 1

    @property
    def recorded(self) -> CompileOptions:
        """Return the options that give this code elsewhere: with the cores of this machine, if it is for them."""
        return replace(self.options, cores=self.target.cores) if self.target.is_own else self.options

    def event(self, stage: str, done: int, total: int) -> None:
        """Report progress."""
        if self.options.on_event is not None:
            self.options.on_event(stage, done, total)

    def save(self, name: str, text: Callable[[], str]) -> None:
        """Write a stage into the folder of `--save-temps`, if there is one."""
        if self.options.save_temps is not None:
            self.options.save_temps.mkdir(parents=True, exist_ok=True)
            path = self.options.save_temps / name
            with naming(path):
                path.write_text(text())


def _short(options: CompileOptions) -> CompileOptions | None:
    """Return options that compute in bf16 as it is fastest on their target; None if that is no faster than f32."""
    exact = replace(options, precision=BF16)
    target = _target(exact)
    if target.abilities.tiles or "add_even" in target.abilities.intrinsics:
        return exact
    fast = replace(exact, fast_math=True)
    return fast if _target(fast).abilities.sums_pairs else None


def _target(options: CompileOptions) -> Target:
    """Return the highest target; this machine has tile registers for layers of 16 bits if the system gives them."""
    levels = names_of(options.target)
    target = replace(parse_target(levels[-1], options.cores), compact_code=options.fast_compile)
    if precision_of(options.precision).computes_in_f32:
        return target
    fast = options.fast_math
    adapted = replace(target, keeps_sum_order=not fast, tiles=True, fast_math=fast)
    return adapted.without_tiles() if levels == ("native",) and adapted.abilities.tiles and refused_tiles() else adapted
