"""Append, and the operations around it: variables that grow along one dimension stay where they are.

    before = ReadValue("v", nothing)                  sizes = CacheSizes(new sizes, rows)
    v = Concat(Gather(before, rows), new)     ->      room = CacheRoom(sizes)
    Assign("v", v)                                    v = Append("v")(new, sizes, room, rows, starts)
                                                      Assign("v")(v), which writes its sizes only

All of them have room for as many tokens; the pass `append_variables` writes them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aot.codegen.ir.loops import as_expr, prim
from aot.ir.conditions import Condition
from aot.ir.op import Stateful
from aot.ir.operand import Operand
from aot.ir.registry import op
from aot.ir.types import Array, TensorType
from aot.opset.control.state import Later, Now
from aot.runtime.abi import DType

ROWS, PAST, ROOM, BYTES, AGREE, MOVED, SHOWN, WHOLE = range(8)  # elements of CacheSizes


@op()
class CacheSizes(Stateful):
    """Sizes [8] of the variables `ids`, for inputs [batch, new tokens] and, optionally, the kept row of each row.

    Kept rows and tokens; tokens that there shall be room for; bytes of that; 1 if all variables agree; 1 if rows move;
    the rows that a read shows, which are the batch before anything is kept; kept and new tokens. A row of a token of
    variable v is `widths[v]` elements in each of `runs[v]` places. `context`: tokens that there is room for from the
    first call on; 0: room grows with the tokens.
    """

    ids: tuple[str, ...] = ()
    axes: tuple[int, ...] = ()
    runs: tuple[int, ...] = ()
    widths: tuple[int, ...] = ()
    element_type: DType = DType.F32
    context: int = 0

    def infer(self, new: Operand, rows: Operand | None = None) -> TensorType:
        return TensorType(DType.I64, (8,))

    def access(self, now: Now, later: Later, *arrays: Array | None) -> Array:
        batch, order = arrays[0], arrays[1] if len(arrays) > 1 else None
        assert batch is not None
        sizes = {
            (now[v].shape[0], now[v].shape[k]) if v in now else (0, 0) for v, k in zip(self.ids, self.axes, strict=True)
        }
        rows, past = sizes.pop()
        is_moved = rows > 0 and (rows != batch[0] or (order is not None and not np.array_equal(order, np.arange(rows))))
        agree = not sizes and (not is_moved or order is not None)
        return np.array([rows, past, 0, 0, agree, is_moved, rows or batch[0], past + batch[1]], np.int64)


@op()
class CacheRoom(Stateful):
    """Tokens [1] that all variables have room for, once they have been moved to where that is.

    `context`: the most tokens that may be kept; 0: any number.
    """

    context: int = 0

    def infer(self, sizes: Operand) -> TensorType:
        return TensorType(DType.I64, (1,))

    def conditions(self, sizes: Operand) -> Sequence[Condition]:
        rule = "the variables keep as many rows and tokens as each other, and rows move by beam_idx only"
        dims = sizes.dims("CacheRoom: sizes")
        if not self.context:
            return [(dims[AGREE], 1, rule)]
        least, most = prim("min", as_expr(dims[WHOLE], DType.I64), self.context), f"{self.context} (--max-context)"
        return [(dims[AGREE], 1, rule), (least, dims[WHOLE], f"tokens kept and new must be at most {most}")]

    def access(self, now: Now, later: Later, *arrays: Array | None) -> Array:
        return np.zeros(1, np.int64)


@op()
class Append(Stateful):
    """Value of a variable, rows chosen by `rows`, with `x` after it along `axis`, where it lies in the state.

    `last`: tokens are neighbours in memory. `starts` [batch]: where the new tokens of each row lie along `axis`,
    instead of after all that are kept; elements after them are undefined.
    """

    axis: int = 0
    last: bool = False

    def infer(
        self,
        x: Operand,
        new: Operand,
        sizes: Operand,
        room: Operand,
        rows: Operand | None = None,
        starts: Operand | None = None,
    ) -> TensorType:
        batch, count = new.dims("Append: new sizes")
        past, _ = sizes.dims("Append: sizes")[PAST], room.dims("Append: room")
        shape = [batch, *x.shape[1:]]
        shape[self.axis] = past + count
        return TensorType(x.dtype, tuple(shape))

    def conditions(self, x: Operand, new: Operand, *rest: Operand | None) -> Sequence[Condition]:
        batch, count = new.dims("Append: new sizes")
        rule = "as many rows and tokens are appended to each variable"
        return [(x.shape[0], batch, rule), (x.shape[self.axis], count, rule)]

    def access(self, now: Now, later: Later, *arrays: Array | None) -> Array:
        x = arrays[0]
        assert x is not None
        if self.variable_id not in now:
            return x
        tokens_before, rows = now[self.variable_id], arrays[4] if len(arrays) > 4 else None
        result = np.concatenate([tokens_before if rows is None else tokens_before[rows], x], self.axis)
        starts = arrays[5] if len(arrays) > 5 else None
        for row, start in enumerate(() if starts is None else np.clip(starts, 0, tokens_before.shape[self.axis])):
            np.moveaxis(result[row], self.axis - 1, 0)[start : start + x.shape[self.axis]] = np.moveaxis(
                x[row], self.axis - 1, 0
            )
        return result
