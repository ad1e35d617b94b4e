"""Products of bytes inside of groups, for machines with dot instructions for i16.

q[k] = u8(..)                         q.i16[k] = i16(u8(..))
add[k](i32(q[k]) i32(r[g, k]))   ->   add[k](i32(q.i16[k]) i32(r.i16[g, k]))
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from aot.codegen.ir.definition import Definition, Group
from aot.codegen.ir.expressions import walk
from aot.codegen.ir.loops import Buffer, Expr, Load, Prim, cast
from aot.codegen.ir.numbers.dot_forms import small_factors
from aot.codegen.ir.program import MemoryRegion
from aot.codegen.ir.traverse import Work, expressions, members, move_loads, rewrite_work
from aot.lowering.ir.steps import Steps, Value
from aot.runtime.abi import DType


def widen_bytes(steps: Steps) -> None:
    """Widen the bytes that groups multiply by constant bytes to i16, with the constants."""
    wide: dict[str, Buffer] = {}
    for d in [d for step in steps.steps for w in step.works if isinstance(w, Group) for d in members(w)]:
        factors = small_factors(d.reduction) if d.reduction is not None else None
        if factors is None or (factors[0].dtype, factors[1].dtype) != (DType.U8, DType.I8):
            continue
        x, w = (f.buffer for f in factors)
        constant, data = steps.values.get(w.name), steps.values.get(x.name)
        if (
            constant is None
            or constant.data is None
            or constant.arrange is not None
            or data is None
            or data.region is not MemoryRegion.ARENA
        ):
            continue
        if x.name in wide or w.name in wide or not all(_is_cast(steps, name) for name in (x.name, w.name)):
            continue
        wide[w.name] = steps.constant(f"{w.name}.i16", np.asarray(constant.array).astype(np.int16))
        wide[x.name] = replace(x, name=steps.unused(f"{x.name}.i16"), dtype=DType.I16)
        steps.values[wide[x.name].name] = Value(wide[x.name], MemoryRegion.ARENA, holds_bytes=True)
        del steps.values[x.name]
    if wide:
        for step in steps.steps:
            step.works = tuple(_widened(work, wide) for work in step.works)


def _is_cast(steps: Steps, name: str) -> bool:
    """True if all reads of a value convert it to i32, and definitions write it."""
    for work in (work for step in steps.steps for work in step.works):
        values = list(walk(*expressions(work)))
        read = {e for e in values if isinstance(e, Load) and e.buffer.name == name}
        casts = {e.args[0] for e in values if isinstance(e, Prim) and e.fn == "cast" and e.dtype is DType.I32}
        if not read <= casts or (read and not isinstance(work, Definition | Group)):
            return False
    return True


def _widened(work: Work, wide: dict[str, Buffer]) -> Work:
    """Redirect reads and writes; written values are converted."""
    change = move_loads(wide)
    if not isinstance(work, Definition | Group):
        return rewrite_work(work, change)
    stored = {d.value: cast(d.value, DType.I16) for d in _writers(work, wide)}

    def converted(e: Expr) -> Expr | None:
        return stored[e] if e in stored else change(e)

    return rewrite_work(work, converted, lambda b: wide.get(b.name, b))


def _writers(work: Work, wide: dict[str, Buffer]) -> Iterator[Definition]:
    return (d for d in members(work) if d.out.name in wide)
