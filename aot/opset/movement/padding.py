"""Pad: elements added to, or with negative counts removed from, either side of each dimension."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import numpy as np

from aot.codegen.ir.loops import Expr, as_expr, cast, prim, select
from aot.ir.conditions import at_most_equal
from aot.ir.op import ComputeOp, Element
from aot.ir.operand import Input, Operand
from aot.ir.registry import op
from aot.ir.types import Array, Dim, TensorType
from aot.runtime.abi import DType
from aot.runtime.errors import ShapeError


class PadMode(StrEnum):
    CONSTANT = "constant"
    EDGE = "edge"
    REFLECT = "reflect"
    SYMMETRIC = "symmetric"


@op("opset1", "opset12")
class Pad(ComputeOp):
    """out[i] = x[i - begin]; outside: a value, the edge, or the data mirrored (reflect does not repeat the edge)."""

    symbolic, moved = True, (0, 3)

    pad_mode: PadMode = PadMode.CONSTANT

    def infer(self, x: Operand, begins: Operand, ends: Operand, value: Operand | None = None) -> TensorType:
        low, high = begins.dims("Pad: pads_begin"), ends.dims("Pad: pads_end")
        if len(low) != x.rank or len(high) != x.rank:
            raise ShapeError(
                f"Pad: there must be one count a dimension, got {len(low)} and {len(high)} for rank {x.rank}"
            )
        self._check(x, low, high)
        return TensorType(x.dtype, tuple(n + a + b for n, a, b in zip(x.shape, low, high, strict=True)))

    def _check(self, x: Operand, low: tuple[Dim, ...], high: tuple[Dim, ...]) -> None:
        room = {PadMode.REFLECT: -1, PadMode.SYMMETRIC: 0}.get(self.pad_mode)
        for n, a, b in zip(x.shape, low, high, strict=True):
            for count in (a, b):
                if room is not None and isinstance(n, int) and isinstance(count, int) and count > max(n + room, 0):
                    limit = f"at most {max(n + room, 0)} elements of dimension {n}"
                    raise ShapeError(f"Pad: {self.pad_mode} takes {limit}, got {count}")

    def compute(self, out: TensorType, x: Input, begins: Input, ends: Input, value: Input | None = None) -> Element:
        low = begins.operand().dims("Pad: pads_begin")
        fill = self._fill(x, value)

        def element(*at: Expr) -> Expr:
            positions = [i - a for i, a in zip(at, low, strict=True)]
            if self.pad_mode is not PadMode.CONSTANT:
                return x(*(self._mirrored(i, n) for i, n in zip(positions, x.shape, strict=True)))
            if isinstance(fill, int | float):
                return x.padded(*positions, fill=fill)
            inside = x.padded(*positions)
            for i, n in zip(positions, x.shape, strict=True):
                within = prim("and", prim("ge", i, 0), prim("lt", i, n))
                inside = select(within, inside, fill)
            return inside

        return element

    @staticmethod
    def _fill(x: Input, value: Input | None) -> float | Expr:
        if value is None:
            return 0.0
        if value.value is not None:
            number = np.asarray(value.value).reshape(-1)[0]
            return float(number) if x.dtype.is_float else int(number)
        return cast(value(*[0] * value.rank), x.dtype)

    def _mirrored(self, i: Expr, n: Dim) -> Expr:
        """Return `i` mapped back into 0..n by the edge or by mirroring."""
        last = n - 1
        if self.pad_mode is PadMode.EDGE:
            return prim("min", prim("max", i, 0), as_expr(last, DType.I64))
        shift = 0 if self.pad_mode is PadMode.REFLECT else 1
        front = prim("max", i, -i - shift)
        return prim("min", front, (last * 2 + shift) - front)

    def conditions(self, *operands: Operand | None) -> Sequence[tuple[Dim, Dim, str]]:
        x, begins, ends = operands[:3]
        if self.pad_mode is PadMode.CONSTANT or x is None or begins is None or ends is None:
            return ()
        counts = zip((*x.shape, *x.shape), (*begins.dims("Pad: pads_begin"), *ends.dims("Pad: pads_end")), strict=True)
        nonempty = [(n, c) for n, c in counts if not isinstance(c, int) or c > 0]
        if self.pad_mode is PadMode.EDGE:
            rule = "there is an edge to be repeated"
            return [at_most_equal(rule, 1 if isinstance(c, int) else prim("min", c, 1), n) for n, c in nonempty]
        room = -1 if self.pad_mode is PadMode.REFLECT else 0
        rule = f"{self.pad_mode} takes no more than the data have"
        most = [(n + room, c) if not isinstance(n, int) else (max(n + room, 0), c) for n, c in nonempty]
        return [(prim("min", as_expr(c, DType.I64), m), c, rule) for m, c in most]

    def reference(self, x: Array, begins: Array, ends: Array, value: Array | None = None) -> Array:
        low, high = [int(a) for a in begins.reshape(-1)], [int(a) for a in ends.reshape(-1)]
        widths = [(max(a, 0), max(b, 0)) for a, b in zip(low, high, strict=True)]
        if not x.ndim:
            return x
        if self.pad_mode is PadMode.CONSTANT:
            fill = 0 if value is None else np.asarray(value).reshape(-1)[0].astype(x.dtype)
            wide: Array = np.pad(x, widths, constant_values=fill)
        else:
            mirrored: Array = np.pad(x, widths, mode=str(self.pad_mode.value))  # type: ignore[call-overload]
            wide = np.asarray(mirrored, x.dtype)
        sizes = zip(wide.shape, low, high, strict=True)
        return wide[tuple(slice(max(-a, 0), n - max(-b, 0)) for n, a, b in sizes)]
