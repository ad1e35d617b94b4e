"""Proofs that no load and no store of a program's loop nests leaves its buffer: of tiles, vectors and panels, too."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from aot.codegen.ir.rename_sizes import renamed
from aot.lowering.ir.obligations import Least, Obligation
from aot.lowering.ir.proof import prove
from aot.lowering.ir.steps import Step, Value
from aot.lowering.program.build_program import ProgramBuilder


def prove_calls(builder: ProgramBuilder, kernel: str | None = None) -> Iterator[Obligation | Least]:
    """Yield the obligations of each call of a program that was built, or of the calls of one kernel.

    The kernel's parameters are the values that the call gives it; a packed constant has the memory of its panels.
    """
    checks = tuple(r for b in builder.steps.blocks() for s in b.steps for r in s.checks)
    for use in builder.uses:
        if kernel not in (None, use.call.kernel):
            continue
        body, buffers = renamed((use.kernel.body, use.kernel.buffers), use.sizes)
        values: dict[str, Value] = {}
        for b, name, offset in zip(buffers, use.values, use.offsets, strict=True):
            value = builder.steps.values[name]
            known = value.elements != 0 and b.name not in use.packed
            values[b.name] = replace(value, buffer=b, elements=value.elements - offset if known else 0)
        step = Step((body,), (use.call.kernel, *use.call.layers), "Kernel", checks=checks)
        yield from prove(replace(builder.steps, steps=[step], values=values))
