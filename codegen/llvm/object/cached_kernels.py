"""Kernels whose digest and facts a store keeps, by works and schedules: loops are built only for the others.

works, schedules -> SHA-256 -+- in the store: digest and facts of the kernel
                             +- else: apply -> digest, facts -> the store
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, is_dataclass
from functools import partial
from typing import Any, cast

from aot.codegen.ir.digest import digest
from aot.codegen.ir.loops import Buffer, Kernel, Var
from aot.codegen.ir.node import Node
from aot.codegen.ir.schedule import Schedule
from aot.codegen.llvm.object.size_json import size_from, size_json
from aot.codegen.llvm.object.store import Store, compiler_digest
from aot.codegen.nest.cached_kernel import CachedKernel, KernelFacts, facts_of
from aot.codegen.nest.nest import Apply, Works, apply, packings
from aot.codegen.nest.pack import pack_buffer


def keeping(store: Store | None) -> Apply:
    """Return an `apply` that keeps kernels' facts in `store`; the plain one without a store."""
    made_by = compiler_digest() if store is not None else None
    return apply if store is None or made_by is None else partial(_apply, store, made_by)


def _apply(
    store: Store,
    made_by: str,
    name: str,
    works: Works,
    schedules: tuple[Schedule, ...],
    params: tuple[Buffer, ...],
    sizes: tuple[Var, ...],
) -> Kernel:
    """Return the kernel of works. Its facts come from the store, or are computed and put there."""
    key = key_of(made_by, works, schedules, params, sizes)
    code = store.get(key)
    if code is not None:
        facts = json.loads(code)
        known, units = facts.pop("digest"), size_from(facts.pop("units"), sizes)
        buffers, make = _packed(works, schedules, params), partial(apply, name, works, schedules, params, sizes)
        return CachedKernel(name, sizes, buffers, known, KernelFacts(units, **facts), make)
    kernel = apply(name, works, schedules, params, sizes)
    known, facts = digest(kernel.named("")), facts_of(kernel)
    units = size_json(facts.units, sizes)
    if kernel.buffers == _packed(works, schedules, params) and size_from(units, sizes) == facts.units:
        record = {**asdict(facts), "units": units, "digest": known}
        store.put(key, json.dumps(record, sort_keys=True, separators=(",", ":")).encode())
    return CachedKernel(name, sizes, kernel.buffers, known, facts, lambda: kernel)


def key_of(
    made_by: str, works: Works, schedules: tuple[Schedule, ...], params: tuple[Buffer, ...], sizes: tuple[Var, ...]
) -> str:
    """Return the key of a kernel's entry in the store."""
    parts = (params, sizes, *map(_parts, works))
    return hashlib.sha256(f"{made_by} loops {digest(parts)} {schedules!r}".encode()).hexdigest()


def _packed(works: Works, schedules: tuple[Schedule, ...], params: tuple[Buffer, ...]) -> tuple[Buffer, ...]:
    """Return the parameters of a kernel; packed ones have the shape of their panels."""
    by_operand = {name: packing for w, s in zip(works, schedules, strict=True) for name, packing in packings(w, s)}
    return tuple(p if (packing := by_operand.get(p.name)) is None else pack_buffer(p, packing) for p in params)


def _parts(work: object) -> object:
    """Return a work as nested tuples with nodes in them."""
    if isinstance(work, Node):
        return work
    if isinstance(work, tuple):
        return tuple(map(_parts, cast("tuple[object, ...]", work)))
    if is_dataclass(work):
        fields: dict[str, Any] = work.__dataclass_fields__
        return (type(work).__name__, *(_parts(getattr(work, field)) for field in fields))
    return work
