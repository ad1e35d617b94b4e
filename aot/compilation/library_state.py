"""State that all versions and levels of one library have in common: its budget, weights, extensions, kernels."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from functools import cached_property, partial
from pathlib import Path

from aot.codegen.llvm.driver.module import pool_module
from aot.codegen.llvm.levels import names_of
from aot.codegen.llvm.object.parts import Parts
from aot.codegen.llvm.object.workers import Workers
from aot.codegen.target import Target
from aot.compilation.kernel_cache import kernel_store
from aot.compilation.limits.budget import Budget, run_within
from aot.extensions.folder import Extensions, load_for
from aot.ir.scope import Scope
from aot.lowering.program.constant_places import Weights
from aot.options import CompileOptions


class LibraryState:
    """State of one library while it is compiled. `key`: the cache's entry that it becomes, empty if none.

    `folder`: where it is written; None while that is not known.
    """

    def __init__(self, options: CompileOptions, framework: str) -> None:
        """`options`: of the whole library. `framework`: the model's; extensions of that framework take part."""
        several = names_of(options.target) != (options.target,) or bool(options.specialise)
        self.weights = Weights(several)
        self.budget = Budget(options.max_memory, options.max_seconds, hard=options.hard_limits)
        self.key = ""
        self.folder: Path | None = None
        self.store = kernel_store(options.kernel_cache)
        self._options, self._framework = options, framework
        self._workers: Workers | None = None
        self._parts: dict[tuple[Target, int | None], Parts] = {}

    @contextmanager
    def compiling(self) -> Generator[None]:
        """Let kernels be compiled while others are scheduled."""
        with Workers() as self._workers:
            try:
                yield
            finally:
                self._workers = None
                self._parts.clear()

    def parts(self, target: Target, level: int | None) -> Parts | None:
        """Return the kernels for a target that are being compiled; None outside of `compiling`."""
        if self._workers is None:
            return None
        if (target, level) not in self._parts:
            self._parts[target, level] = Parts(self._workers, target, level, self.store, pool_module(target))
        return self._parts[target, level]

    @cached_property
    def extensions(self) -> Extensions | None:
        """Return the user's operations, conversions and passes."""
        return run_within(self.budget, partial(load_for, self._options, self._framework))

    @property
    def scope(self) -> Scope | None:
        """Return the operations and conversions that are known while this library is compiled."""
        return None if self.extensions is None else self.extensions.scope
