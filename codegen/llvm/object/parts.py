"""Kernels as object code, each in a module of its own, which several processes compile and a store keeps.

    kernels -+- in the store ------------------------------------------------+-> objects -> one object
             +- others -> functions -+- of vectors: as they stand    -+------+                 |
                                     +- others: after LLVM's passes  -+                        |
                             drivers, thread pool: as they stand -------------> objects ------+

Schedules decide the form of vector loops, to which LLVM's passes add nothing (measured: 0 to 1 % of the run time, for
half of the compile time); algorithms over scalars gain from them. A module has no names and numbers of its network, so
that networks share it: the functions get their names when the objects are combined. The module of the thread pool is
the same for all networks; a process compiles it once.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import cast

from aot.codegen.ir.digest import digest
from aot.codegen.ir.loops import Kernel, Size
from aot.codegen.llvm.emit.function_text import Function, global_name
from aot.codegen.llvm.emit.kernel import emit
from aot.codegen.llvm.linking.wasm_object import packed
from aot.codegen.llvm.object import optimize
from aot.codegen.llvm.object.combine import combine
from aot.codegen.llvm.object.features import features_used
from aot.codegen.llvm.object.size_json import size_from, size_json
from aot.codegen.llvm.object.store import Store, compiler_digest
from aot.codegen.llvm.object.workers import Workers
from aot.codegen.nest.cached_kernel import CachedKernel
from aot.codegen.target import Target
from aot.runtime.loading.foreign.wasm import MAGIC

ENTRY = "kernel"  # name of the function in a module
_LENGTH_BYTES = 4
_VECTOR = re.compile(r"<\d+ x ")


def has_vectors(text: str) -> bool:
    return _VECTOR.search(text) is not None


class Declared:
    """Declaration of a function that another module defines."""

    def __init__(self, kernel: Kernel, scratch_bytes: Size) -> None:
        self.globals: list[str] = []
        self.declarations: set[str] = set()
        self.scratch_bytes, self.sizes = scratch_bytes, kernel.sizes
        types = ["ptr"] * len(kernel.buffers) + ["i64"] * (len(kernel.sizes) + 2) + ["ptr"]
        self._text = f"declare hidden void {global_name(kernel.name)}({', '.join(types)})\n"

    def text(self) -> str:
        return self._text


class Parts:
    """Collects the kernels of a model, and submits to the workers those that the store does not have."""

    def __init__(
        self, workers: Workers, target: Target, level: int | None, store: Store | None = None, count: int = 1
    ) -> None:
        """`level`: level of LLVM's passes for functions without vectors. `count`: kernels that will be placed."""
        self._workers, self._target, self._level, self._count = workers, target, level, max(count, 1)
        made_by = compiler_digest() if store is not None else None
        self._store = store if made_by is not None else None
        self._context = f"{made_by} {target!r} {level} {optimize.EFFORT}"
        self._objects: list[tuple[bytes | None, dict[str, str]]] = []  # None: of the workers
        self._compiled: list[str] = []  # names of the kernels that the workers compile
        self.features: frozenset[str] = frozenset()  # features that functions use beyond those of all code

    def place(self, kernel: Kernel, flushes: bool) -> Declared:
        """Add a kernel; return its declaration for the drivers' module. `flushes`: as for `emit`."""
        key = self._key("kernel", _digest(kernel), flushes) if self._store is not None else ""
        cached = self._store.get(key) if self._store is not None else None
        if cached is not None:
            head, code = _unpacked(cached)
            scratch, features = size_from(head["scratch"], kernel.sizes), cast("list[str]", head["features"])
        else:
            function = emit(kernel.named(ENTRY), target=self._target, flushes=flushes)
            text, code = functions_text([function], "hidden "), None
            scratch, features = function.scratch_bytes, sorted(features_used(text, self._target.machine))
            head = {"features": features, "scratch": size_json(scratch, kernel.sizes)}
            self._submit(text, None if has_vectors(text) else self._level, key, head)
            self._compiled.append(kernel.name)
        self.features |= frozenset(features)
        self._objects.append((code, {ENTRY: kernel.name}))
        return Declared(kernel, scratch)

    def finish(self, drivers: str, pool: str, progress: Callable[[int, int], None]) -> Objects:
        """Compile the drivers' and the pool's module; return all objects.

        `progress` gets the number of finished ones without the pool's.
        """
        key = self._key("drivers", drivers)
        main = self._stored(key)
        if main is None:
            self._submit(drivers, None, key, {})
        self._objects.append((main, {}))
        cached = sum(code is not None for code, _ in self._objects)
        progress(cached, len(self._objects))
        made = iter(self._workers.finish(lambda done, total: progress(cached + done, cached + total)))
        *kernels, main_object = [(next(made) if code is None else code, names) for code, names in self._objects]
        seconds = dict(zip(self._compiled, self._workers.seconds, strict=False))  # the drivers' are the last
        return Objects([main_object, (self._pool(pool), {}), *kernels], seconds)

    def _pool(self, text: str) -> bytes:
        key = self._key("pool", text)
        code = self._stored(key)
        if code is None:
            code = compiled_once(text, self._target, optimize.EFFORT)
            if self._store is not None:
                self._store.put(key, _packed({}, code))
        return code

    def _stored(self, key: str) -> bytes | None:
        """Return the object code that the store has for `key`, None if it has none."""
        entry = self._store.get(key) if self._store is not None else None
        return None if entry is None else _unpacked(entry)[1]

    def _key(self, *parts: object) -> str:
        return hashlib.sha256(repr((self._context, *parts)).encode()).hexdigest()

    def _submit(self, text: str, level: int | None, key: str, head: Mapping[str, object]) -> None:
        def keep(code: bytes) -> None:
            if self._store is not None:
                self._store.put(key, _packed(head, code))

        self._workers.submit(text, level, keep, min(1.0, (len(self._objects) + 1) / self._count))


@lru_cache(maxsize=1 << 3)
def compiled_once(text: str, target: Target, effort: int) -> bytes:
    """Return the object code of a module that many networks have."""
    del effort  # with which it is compiled
    return optimize.compile_module(text, target, None)


def _digest(kernel: Kernel) -> str:
    return kernel.digest if isinstance(kernel, CachedKernel) else digest(kernel.named(""))


class Objects:
    """Objects of a model, with the names that their symbols get: drivers, thread pool, kernels in their order.

    `seconds`: those that LLVM took, by kernel.
    """

    def __init__(self, objects: Sequence[tuple[bytes, Mapping[str, str]]], seconds: Mapping[str, float]) -> None:
        self._objects, self.seconds = objects, seconds

    @property
    def digest(self) -> str:
        """SHA-256 of the code of the pool and of the kernels."""
        sha = hashlib.sha256()
        for code, names in self._objects[1:]:
            sha.update(f"{len(code)} {names}\n".encode() + code)
        return sha.hexdigest()

    def joined(self, names: Mapping[str, str]) -> bytes:
        """Return one object, or several as one of WebAssembly; `names`: new names of symbols of the drivers."""
        (drivers, _), *kernels = self._objects
        join = packed if drivers.startswith(MAGIC) else combine
        return join([(drivers, names), *kernels])


def functions_text(functions: Sequence[Function], linkage: str = "") -> str:
    """Return a module of functions that other modules may call."""
    declarations = sorted({d for f in functions for d in f.declarations})
    tables = [line for f in functions for line in f.globals]
    texts = [f.text().replace("define internal ", f"define {linkage}", 1) for f in functions]
    return "\n".join([*tables, *texts, *declarations]) + "\n"


def _packed(head: Mapping[str, object], code: bytes) -> bytes:
    text = json.dumps(head, sort_keys=True, separators=(",", ":")).encode()
    return len(text).to_bytes(_LENGTH_BYTES, "little") + text + code


def _unpacked(data: bytes) -> tuple[dict[str, object], bytes]:
    end = _LENGTH_BYTES + int.from_bytes(data[:_LENGTH_BYTES], "little")
    return json.loads(data[_LENGTH_BYTES:end]), data[end:]
