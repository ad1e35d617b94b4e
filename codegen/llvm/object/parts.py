"""Kernels as object code, in parts that several processes can compile.

    kernels -> functions -+- of vectors: as they stand    -+-> parts of about the same size -> objects -+-> one object
                          +- others: after LLVM's passes  -+                                            |
                                                    drivers: as they stand -------------> object -------+

Schedules decide the form of vector loops, to which LLVM's passes add nothing (measured: 0 to 1 % of the run time, for
half of the compile time); algorithms over scalars gain from them. Parts are cut by the size of their text, so they
are the same however many processes there are.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence

from aot.codegen.llvm.emit.function_text import Function
from aot.codegen.llvm.object.combine import combine
from aot.codegen.llvm.object.features import features_used
from aot.codegen.llvm.object.workers import Workers

PART_BYTES = 192 << 10
_VECTOR = re.compile(r"<\d+ x ")


def has_vectors(text: str) -> bool:
    return _VECTOR.search(text) is not None


class Declared:
    """Declaration of a function that another part defines."""

    def __init__(self, function: Function) -> None:
        self.globals: list[str] = []
        self.declarations: set[str] = set()
        self.scratch_bytes, self.sizes = function.scratch_bytes, function.sizes
        self._head = function.head.replace("define internal", "declare hidden", 1)

    def text(self) -> str:
        return self._head + "\n"


class Parts:
    """Collects functions as they are emitted, and submits them to the workers in parts."""

    def __init__(self, workers: Workers, level: int | None) -> None:
        """`level`: level of LLVM's passes for functions without vectors."""
        self._workers = workers
        self._waiting: dict[int | None, list[Function]] = {None: [], level: []}
        self._bytes: dict[int | None, int] = {None: 0, level: 0}
        self._level = level
        self.digest = hashlib.sha256()  # of all text
        self.features: frozenset[str] = frozenset()  # that functions use beyond those of all code

    def place(self, function: Function) -> Declared:
        """Add a function; return its declaration for the drivers' module."""
        text = function.text()
        self.features |= features_used(text)
        level = None if has_vectors(text) else self._level
        self._waiting[level].append(function)
        self._bytes[level] += len(text)
        if self._bytes[level] >= PART_BYTES:
            self._hand_out(level)
        return Declared(function)

    def close(self) -> None:
        """Submit the functions that are left."""
        for level in self._waiting:
            self._hand_out(level)

    def joined(self, drivers: str, progress: Callable[[int, int], None]) -> bytes:
        """Return the object code of the drivers' module and all parts; `progress` gets the number of finished ones."""
        self._workers.submit(drivers, None)
        *parts, main = self._workers.finish(progress)
        return combine([main, *parts])

    def _hand_out(self, level: int | None) -> None:
        functions, self._waiting[level], self._bytes[level] = self._waiting[level], [], 0
        if functions:
            text = functions_text(functions, "hidden ")
            self.digest.update(text.encode())
            self._workers.submit(text, level)


def functions_text(functions: Sequence[Function], linkage: str = "") -> str:
    """Return a module of functions that other modules may call."""
    declarations = sorted({d for f in functions for d in f.declarations})
    tables = [line for f in functions for line in f.globals]
    texts = [f.text().replace("define internal ", f"define {linkage}", 1) for f in functions]
    return "\n".join([*tables, *texts, *declarations]) + "\n"
