"""Cost of computing a value while compiling, estimated beforehand: bytes of a table, seconds of a reference."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from aot.codegen.ir.expressions import walk
from aot.codegen.ir.loops import Reduce, Var, dense
from aot.ir.op import ComputeOp, Op
from aot.ir.operand import Input, Operand
from aot.ir.types import TensorType
from aot.runtime.errors import BudgetError

MAX_TABLE_BYTES = 1 << 28  # bytes of a constant computed from attributes; known networks have up to 2^24 elements
TERM_SECONDS = 2e-10  # seconds of one multiply-add of a product in NumPy
TAP_SECONDS = 2e-5  # seconds of a pass over all outputs; references of windows make one for each element of the window
MAX_FOLD_SECONDS = 10.0  # seconds spent at most on folding one value; slower ones are computed by the compiled model


def check_table(what: str, *shape: int, itemsize: int = 8) -> None:
    """Raise BudgetError if a constant of this shape is too large to be computed while compiling."""
    size = prod(shape) * itemsize
    if size > MAX_TABLE_BYTES:
        raise BudgetError(f"{what}: a constant can have at most {MAX_TABLE_BYTES} bytes, got {size} for {list(shape)}")


def is_quick(op: Op, inputs: Sequence[Operand | None], types: Sequence[TensorType]) -> bool:
    """True if the reference takes at most `MAX_FOLD_SECONDS`, estimated by the terms of the operation's sums."""
    taps = prod(getattr(op, "kernel", ()) or (1,))
    elements = sum([prod(t.static_shape) for t in types if t.is_static])
    if isinstance(op, ComputeOp) and not hasattr(op, "scalar") and taps * TAP_SECONDS <= MAX_FOLD_SECONDS:
        taps = _terms(op, inputs, types[0])
    return taps * (TAP_SECONDS + elements * TERM_SECONDS) <= MAX_FOLD_SECONDS


def _terms(op: ComputeOp, inputs: Sequence[Operand | None], out: TensorType) -> int:
    """Return the number of terms of the sums of one element; sums of unknown extent count as one term."""
    buffers = [
        None if o is None else Input(dense(f"x{i}", *o.shape, dtype=o.dtype), o.type, o.value)
        for i, o in enumerate(inputs)
    ]
    index = [Var(f"i{k}", n) for k, n in enumerate(out.shape)]
    sums = [e for e in walk(op.compute(out, *buffers)(*index)) if isinstance(e, Reduce)]
    extents = [[a.extent for a in e.axes if isinstance(a.extent, int)] for e in sums]
    return max((prod(sizes) for sizes in extents), default=1)
