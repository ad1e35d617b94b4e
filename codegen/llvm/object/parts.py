"""Kernels as object code, each in a module of its own, which several processes make and a store keeps.

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
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import lru_cache, partial
from typing import cast

from aot.codegen.ir.loops import Kernel, Size
from aot.codegen.llvm.emit.function_text import global_name
from aot.codegen.llvm.linking.wasm_object import packed
from aot.codegen.llvm.object import optimize
from aot.codegen.llvm.object.combine import combine
from aot.codegen.llvm.object.kernel_module import ENTRY, Head, KernelModule, facts_from
from aot.codegen.llvm.object.optimize import compile_module
from aot.codegen.llvm.object.size_json import size_from
from aot.codegen.llvm.object.store import Store, compiler_digest
from aot.codegen.llvm.object.workers import Task, Workers
from aot.codegen.nest.scheduled_kernel import ScheduledKernel, kernel_digest
from aot.codegen.target import Target
from aot.runtime.loading.foreign.wasm import MAGIC

_LENGTH_BYTES = 4


class Declared:
    """Declaration of a function that another module defines; its scratch memory is known once the text is written."""

    def __init__(self, kernel: Kernel) -> None:
        self.globals: list[str] = []
        self.declarations: set[str] = set()
        self.scratch_bytes: Size = 0
        self.sizes, self.name = kernel.sizes, kernel.name
        types = ["ptr"] * len(kernel.buffers) + ["i64"] * (len(kernel.sizes) + 2) + ["ptr"]
        self._text = f"declare hidden void {global_name(kernel.name)}({', '.join(types)})\n"

    def text(self) -> str:
        return self._text


class Parts:
    """Collects the kernels of a model, and submits to the workers those that the store does not have."""

    def __init__(self, workers: Workers, target: Target, level: int | None, store: Store | None, pool: str) -> None:
        """`level`: level of LLVM's passes for functions without vectors. `pool`: text of the thread pool's module."""
        self._workers, self._target, self._level = workers, target, level
        made_by = compiler_digest() if store is not None else None
        self._store = store if made_by is not None else None
        self._context = f"{made_by} {target!r} {level} {optimize.EFFORT}"
        self._tasks: dict[tuple[Kernel, bool], Task] = {}
        self._placed: list[tuple[Kernel, Declared, Task]] = []
        make = partial(compiled_once, pool, target, optimize.EFFORT)
        self._pool = workers.run(partial(self._module, "pool", pool, make))

    def submit(self, kernel: Kernel, flushes: bool, share: float = 1.0) -> Task:
        """Begin to compile a kernel, unless this has begun. `flushes`: as for `emit`; `share`: as for `Workers`."""
        kernel, flushes = kernel.named(""), flushes and self._target.abilities.rounds_normal
        task = self._tasks.get((kernel, flushes))
        if task is None:
            module = KernelModule(kernel, self._target, self._level, flushes)
            task = self._tasks[kernel, flushes] = self._task(module, share)
        return task

    def _task(self, module: KernelModule, share: float) -> Task:
        store = self._store
        if store is None:
            return self._workers.submit(module, share)
        key = self._key("kernel", kernel_digest(module.kernel), module.flushes)
        entry = store.get(key)
        if entry is not None:
            return Task.of(module, *_unpacked(entry))
        task = self._workers.submit(module, share)

        def keep(code: Future[bytes]) -> None:
            if code.exception() is None:
                store.put(key, _packed(task.head.result(), code.result()))

        task.code.add_done_callback(keep)
        return task

    def place(self, kernel: Kernel, flushes: bool, count: int) -> Declared:
        """Add one of `count` kernels to the model; return its declaration for the drivers' module."""
        declared = Declared(kernel)
        self._placed.append((kernel, declared, self.submit(kernel, flushes, (len(self._placed) + 1) / count)))
        return declared

    def finish_texts(self) -> frozenset[str]:
        """Set scratch memory and facts of all kernels; return the features that they use beyond those of all code."""
        features = frozenset[str]()
        for kernel, declared, task in self._placed:
            head = self._workers.wait(task.head)
            if isinstance(kernel, ScheduledKernel):
                kernel.set_facts(facts_from(head, kernel.sizes))
            declared.scratch_bytes = size_from(head["scratch"], declared.sizes)
            features |= frozenset(cast("list[str]", head["features"]))
        return features

    def finish(self, drivers: str, progress: Callable[[int, int], None]) -> Objects:
        """Compile the drivers' module; return all objects. `progress` gets the number of finished ones but the pool."""
        main = self._module("drivers", drivers, lambda: compile_module(drivers, self._target, None))
        objects: list[tuple[bytes, Mapping[str, str]]] = [(main, {}), (self._workers.wait(self._pool), {})]
        compiled: list[Future[bytes]] = []
        for _, _, task in self._placed:
            task.code.add_done_callback(compiled.append)

        def tell() -> None:
            progress(1 + len(compiled), 1 + len(self._placed))

        tell()
        objects += [(self._workers.wait(task.code, tell), {ENTRY: declared.name}) for _, declared, task in self._placed]
        seconds = {declared.name: (task.text_seconds, task.llvm_seconds) for _, declared, task in self._placed}
        return Objects(objects, seconds)

    def _module(self, kind: str, text: str, make: Callable[[], bytes]) -> bytes:
        """Return the object code of a module that is no kernel: the store's, or what `make` returns."""
        key = self._key(kind, text)
        entry = self._store.get(key) if self._store is not None else None
        if entry is not None:
            return _unpacked(entry)[1]
        code = make()
        if self._store is not None:
            self._store.put(key, _packed({}, code))
        return code

    def _key(self, *parts: object) -> str:
        return hashlib.sha256(repr((self._context, *parts)).encode()).hexdigest()


@lru_cache(maxsize=1 << 3)
def compiled_once(text: str, target: Target, effort: int) -> bytes:
    """Return the object code of a module that many networks have."""
    del effort  # with which it is compiled
    return optimize.compile_module(text, target, None)


class Objects:
    """Objects of a model, with the names that their symbols get: drivers, thread pool, kernels in their order.

    `seconds`: those that the text and LLVM took, by kernel.
    """

    def __init__(
        self, objects: Sequence[tuple[bytes, Mapping[str, str]]], seconds: Mapping[str, tuple[float, float]]
    ) -> None:
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


def _packed(head: Mapping[str, object], code: bytes) -> bytes:
    text = json.dumps(head, sort_keys=True, separators=(",", ":")).encode()
    return len(text).to_bytes(_LENGTH_BYTES, "little") + text + code


def _unpacked(data: bytes) -> tuple[Head, bytes]:
    end = _LENGTH_BYTES + int.from_bytes(data[:_LENGTH_BYTES], "little")
    return json.loads(data[_LENGTH_BYTES:end]), data[end:]
