"""Rounding of weights, column after column: later columns compensate for the errors of earlier ones.

    y[i] = sum over k of x[k] w[i, k]        S = mean of x^T x over samples: second moments of the data

The error of y is (w - q) S (w - q)^T. Where column k is rounded by an error of e, it is least if the columns after it
change by -e U[k, j] / U[k, k], where U is the upper triangle of Cholesky's factor of the inverse of S (GPTQ, Frantar et
al. 2022). Scales of a group are chosen when its first column is reached.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from aot.ir.types import Array
from aot.passes.weights.rounding import Rounded, round_groups

BLOCK = 128  # columns whose errors are passed on together
DAMPING = 0.01  # share of the mean of the moments that is added to all of them, as in the paper
STRONGER = 10.0  # times which it is tried with where moments have no inverse

Floats = NDArray[np.float64]


class Compensation:
    """Rounds weights that are multiplied with data of the given `moments` [columns, columns]."""

    def __init__(self, moments: Floats) -> None:
        self.importance, self.spread = np.diag(moments), _spread(moments)

    def round(self, weights: Array, bits: int, group: int) -> Rounded:
        """Return weights [rows, columns] as groups [rows, columns / group, group] of integers of `bits` with scales."""
        rows, columns = weights.shape
        left, whole = weights.astype(np.float32), np.empty(weights.shape, np.uint8)
        parts: list[Rounded] = []
        for first in range(0, columns, group):
            now = slice(first, first + group)
            part = round_groups(left[:, now], bits, self.importance[now])
            parts.append(part)
            for start in range(first, first + group, BLOCK):
                block = slice(start, min(start + BLOCK, first + group))
                whole[:, block], errors = _round_block(left[:, block], part, bits, self.spread[block, block])
                left[:, block.stop :] -= errors @ self.spread[block, block.stop :]
        scales, zeros = (np.stack(a, 1) for a in zip(*((p.scales, p.zeros) for p in parts), strict=True))
        return Rounded(whole.reshape(rows, -1, group), scales, zeros)


def _round_block(left: Array, part: Rounded, bits: int, spread: NDArray[np.float32]) -> tuple[Array, Array]:
    """Round some columns of a group; return the integers, and the errors over the diagonal of `spread`."""
    assert part.zeros is not None
    scale, zero = (a[:, 0].astype(np.float32) for a in (part.scales, part.zeros))
    left, levels, errors = left.copy(), np.empty(left.shape, np.uint8), np.empty_like(left)
    for k in range(left.shape[1]):
        rounded = (np.rint(left[:, k] / scale) + zero).clip(0, 2**bits - 1)
        levels[:, k] = rounded
        errors[:, k] = (left[:, k] - (rounded - zero) * scale) / spread[k, k]
        rest: Array = left[:, k + 1 :]
        rest -= np.outer(errors[:, k], spread[k, k + 1 :])
    return levels, errors


def _spread(moments: Floats) -> NDArray[np.float32]:
    """Return the upper Cholesky factor of the inverse of the moments, damped until it exists.

    Columns without data pass their errors on to none, and take none.
    """
    own = np.diag(moments)
    mean = float(own.mean()) or 1.0
    damping = DAMPING
    while True:
        damped = moments + np.diag(np.where(own > 0, damping * mean, mean))
        try:
            return np.linalg.cholesky(np.linalg.inv(damped)).T.astype(np.float32)
        except np.linalg.LinAlgError:
            damping *= STRONGER
