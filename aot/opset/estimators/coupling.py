"""Probabilities of classes from probabilities of pairs of classes."""

from __future__ import annotations

import numpy as np

from aot.codegen.ir.loops import Buffer, Space, dense
from aot.codegen.script.script import Scripted, loops, parallel, var
from aot.ir.op import LoopOp, Work
from aot.ir.operand import Input, Operand
from aot.ir.registry import op
from aot.ir.types import Array, TensorType
from aot.runtime.abi import DType
from aot.runtime.errors import ShapeError

MAX_ITERATIONS = 100  # maximum number of iterations
MAX_ERROR = 0.005  # divided by the number of classes: largest error at which the search ends


@op()
class PairwiseCoupling(LoopOp):
    """Probabilities p [rows, k] that minimise p Q p, from those of pairs r [rows, k, k], r[i, j] + r[j, i] = 1.

    Q[i, i] is the sum of r[j, i]^2 over j, and Q[i, j] is -r[j, i] r[i, j] (Wu, Lin, Weng 2004; solved as in LIBSVM).
    """

    def infer(self, r: Operand) -> TensorType:
        if r.rank != 3 or r.dtype is not DType.F32 or not isinstance(r.shape[1], int) or r.shape[1] != r.shape[2]:
            raise ShapeError(f"PairwiseCoupling: the input must be f32 [rows, k, k], got {r.type}")
        return TensorType(r.dtype, r.shape[:2])

    def nest(self, outs: tuple[Buffer, ...], r: Input) -> tuple[Work, ...]:
        q, qp = dense("q", *r.shape, space=Space.ARENA), dense("qp", *r.shape[:2], space=Space.ARENA)
        return (_couple(outs[0], r.buffer, q, qp, *r.shape[:2]),)

    def reference(self, r: Array) -> Array:
        count, classes = r.shape[:2]
        q = -r.swapaxes(1, 2) * r
        diagonal: Array = np.array(range(classes))
        q[:, diagonal, diagonal] = (r * r).sum(1) - r[:, diagonal, diagonal] ** 2
        p = np.full((count, classes), 1 / classes, np.float32)
        for row in range(count):
            _descend(q[row], p[row])
        return p


def _descend(q: Array, p: Array) -> None:
    for _ in range(MAX_ITERATIONS):
        qp = q @ p
        total = p @ qp
        if np.abs(qp - total).max() < MAX_ERROR / len(p):
            return
        for i in range(len(p)):
            step = (total - qp[i]) / q[i, i]
            p[i] += step
            total = (total + step * (step * q[i, i] + 2 * qp[i])) / (1 + step) / (1 + step)
            qp[:] = (qp + step * q[i]) / (1 + step)
            p /= 1 + step


@loops
def _couple(out: Scripted, r: Scripted, q: Scripted, qp: Scripted, rows: Scripted, classes: int) -> None:
    for row in parallel(rows):
        for i in range(classes):
            out[row, i] = 1 / classes
            own = var(0.0)
            for j in range(classes):
                q[row, i, j] = -(r[row, j, i] * r[row, i, j])
                if i != j:
                    own += r[row, j, i] * r[row, j, i]
            q[row, i, i] = own
        step = var(0, DType.I64)
        while step < MAX_ITERATIONS:
            total = var(0.0)
            for i in range(classes):
                product = var(0.0)
                for j in range(classes):
                    product += q[row, i, j] * out[row, j]
                qp[row, i] = product
                total += out[row, i] * product
            worst = var(0.0)
            for i in range(classes):
                worst = max(worst, abs(qp[row, i] - total))
            step += 1
            if worst < MAX_ERROR / classes:
                step = MAX_ITERATIONS
            else:
                _improve(out, q, qp, total, row, classes)


@loops
def _improve(out: Scripted, q: Scripted, qp: Scripted, total: Scripted, row: Scripted, classes: int) -> None:
    sum_now = var(total)
    for t in range(classes):
        diff = var((sum_now - qp[row, t]) / q[row, t, t])
        out[row, t] = out[row, t] + diff
        scale = var(diff + 1.0)
        sum_now = (sum_now + diff * (diff * q[row, t, t] + qp[row, t] * 2.0)) / scale / scale
        for j in range(classes):
            qp[row, j] = (qp[row, j] + diff * q[row, t, j]) / scale
            out[row, j] = out[row, j] / scale
