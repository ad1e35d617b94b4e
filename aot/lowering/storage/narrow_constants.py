"""Stores constants in the smallest type that holds each of their values: half as many bytes are read.

    w[k, j]: f32, which a file had in f16 and converted   ->   w[k, j]: f16, converted by the load

Every value is kept exactly, so results are the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from math import inf, prod

import numpy as np
from numpy.typing import NDArray

from aot.codegen.costs import COSTS
from aot.codegen.ir.access import points, typical
from aot.codegen.ir.expressions import loads, variables
from aot.codegen.ir.loops import For, If, LoopKind, Prefetch, Size, Stmt, Store, TileOp, Var
from aot.codegen.ir.program import MemoryRegion
from aot.codegen.ir.traverse import Work, members, move_loads, rewrite_work
from aot.codegen.ir.traverse import reads as reads_of
from aot.ir.types import Array
from aot.ir.values.deferred import Deferred, release, value_of
from aot.lowering.context import Context
from aot.lowering.ir.steps import Steps, Value
from aot.opset.deferred_parts import part_of
from aot.runtime.abi import DType

ROUNDED_TO_BF16 = "bf16"  # value of `--weights`
PIECE = 1 << 16  # elements that are tested together: they stay in the cache


def narrow_constants(steps: Steps, context: Context) -> None:
    """Store f32 constants as f16 or bf16 where that loses nothing and is cheap, or weights shall be small.

    Matrices that were rounded to bf16 are stored so, however often they are loaded.
    """
    target = context.target
    if not target.abilities.converts_half:
        return
    uses, fixed = dict[str, int]() if context.small_weights else uses_of(steps), moving(steps)
    read = {x.buffer.name for block in steps.blocks() for step in block.steps for x in step.reads()}
    narrowed: dict[str, Value] = {}
    for name, value in [(n, v) for n, v in steps.values.items() if n in read]:
        few = uses.get(name, 0) <= COSTS.memory_bound_loads
        kinds = {DType.F16: few or target.converts_half_aside, DType.BF16: few or context.weights == ROUNDED_TO_BF16}
        dtype = smallest(value, [t for t, pays in kinds.items() if pays]) if name not in fixed else None
        if dtype is not None:
            narrowed[name] = replace(value, buffer=replace(value.buffer, dtype=dtype))
    if not narrowed:
        return
    steps.values.update(narrowed)
    change = move_loads({name: v.buffer for name, v in narrowed.items()})
    for block in steps.blocks():
        for step in block.steps:
            if any(x.buffer.name in narrowed for x in step.reads()):
                step.works = tuple(rewrite_work(w, change) for w in step.works)


def moving(steps: Steps) -> set[str]:
    """Return the values that move with each repetition: their alignment is known for f32."""
    repeats = (step.repeat for block in steps.blocks() for step in block.steps)
    return {name for r in repeats if r is not None for name, elements in r.shifts.items() if elements}


def smallest(value: Value, kinds: list[DType]) -> DType | None:
    """Return the first type that holds all values of an f32 constant; None if no type does."""
    data = value.data
    if value.region is not MemoryRegion.CONSTANT or value.arrange is not None or value.buffer.dtype is not DType.F32:
        return None
    if data is None or data.size < COSTS.min_narrowed_elements:
        return None
    result = next((dtype for dtype in kinds if all(map(_HOLDS[dtype], _pieces(data)))), None)
    release(data)
    return result


def _pieces(data: Array | Deferred) -> Iterator[NDArray[np.float32]]:
    """Yield the elements in order; of deferred ones few rows are made at a time, since the first ones mostly decide."""
    each = max(PIECE // max(prod(data.shape[1:]), 1), 1)
    for n in range(0, data.shape[0] if data.shape else 1, each):
        end = min(n + each, data.shape[0]) if data.shape else 1
        part = part_of(data, 0, n, end) if isinstance(data, Deferred) else None
        flat = np.ascontiguousarray(value_of(data if part is None else part), np.float32).reshape(-1)
        yield from (flat[k : k + PIECE] for k in range(0, flat.size, PIECE))
        if part is None:
            break


def _is_f16(x: NDArray[np.float32]) -> bool:
    """True where f16 holds a value: ten bits of the mantissa, no NaN; below 2^-14, multiples of 2^-24."""
    if (x.view(np.uint32) & 0x1FFF).any():
        return False
    size = np.abs(x)
    tiny = size[size < 2.0**-14] * np.float32(2.0**24)
    return bool(((size <= 65504) | (size == inf)).all() and (tiny == np.trunc(tiny)).all())


def _is_bf16(x: NDArray[np.float32]) -> bool:
    """True where bf16 holds a value: seven bits of the mantissa, no NaN."""
    return not (x.view(np.uint32) & 0xFFFF).any() and not np.isnan(x).any()


_HOLDS = {DType.F16: _is_f16, DType.BF16: _is_bf16}


def uses_of(steps: Steps, size: Callable[[Size], int] = typical) -> dict[str, float]:
    """Return the loads of an element of each constant by the work that loads it most.

    Of statements they are unknown, but rows of vectors count as few: how often depends on data. `size`: of dynamic
    extents.
    """
    uses: dict[str, float] = {}
    constants = steps.constants()
    for work in (w for block in steps.blocks() for step in block.steps for w in step.works):
        for name, count in _loaded(work, constants, size):
            uses[name] = max(uses.get(name, 0), count)
    return uses


def _loaded(work: Work, constants: frozenset[str], size: Callable[[Size], int]) -> Iterator[tuple[str, float]]:
    """Yield the loads of an element of each constant that a work reads, by its name."""
    if isinstance(work, tuple):
        rows = rows_of(work)
        yield from ((x.buffer.name, 0 if x.buffer.name in rows else inf) for x in reads_of(work))
    for d in members(work):
        for b in dict.fromkeys(x.buffer for x in loads(d.value, *d.index) if x.buffer.name in constants):
            yield b.name, size(points(d)) / max(prod(map(size, b.shape)), 1)


def rows_of(work: tuple[Stmt, ...]) -> set[str]:
    """Return the buffers that statements load as rows: between lanes of vectors the last index differs alone."""
    lanes, rows, others = frozenset(_lanes(work)), set[str](), set[str]()
    for x in reads_of(work) if lanes else ():
        if not variables(*x.index[:-1]).isdisjoint(lanes):
            others.add(x.buffer.name)
        elif x.index and not variables(x.index[-1]).isdisjoint(lanes):
            rows.add(x.buffer.name)
    return rows - others


def _lanes(work: tuple[Stmt, ...]) -> Iterator[Var]:
    for stmt in work:
        match stmt:
            case Store() | Prefetch() | TileOp():
                pass
            case If(_, body, otherwise):
                yield from _lanes((*body, *otherwise))
            case _:
                if isinstance(stmt, For) and stmt.kind is LoopKind.VECTOR:
                    yield stmt.var
                yield from _lanes(stmt.body)
