"""Weights of large matrices in fewer bits while a model is compiled: `--weights int4`, `int8` or `bf16`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.ir.graph import Graph, OutPort
from aot.passes.weights.matrices import SHORT_BITS, Matrix, SmallWeights, round_matrix, sorted_matrices
from aot.runtime.describe import size_text
from aot.runtime.errors import UsageError

BITS = {"int4": 4, "int8": 8, "bf16": SHORT_BITS}
GROUP = 64  # weights of a row that share a scale and a zero point
ROUNDED_WEIGHTS = "rounded_weights"  # where a graph's information has what was rounded


@dataclass(frozen=True, slots=True)
class RoundWeights:
    """Pass for `--weights KIND`: rounds the matrices that take more bits; their errors go to the graph's information.

    UsageError for networks without matrices of constant weights.
    """

    kind: str
    name: str = "round_weights"
    required: bool = True
    run_not_recursively: bool = True  # matrices of bodies stay as they are

    def __call__(self, graph: Graph) -> bool:
        ordered, rows = sorted_matrices(graph, BITS[self.kind])
        if not ordered:
            raise UsageError("--weights: the network must have matrices of constant weights, got none")
        shared: dict[tuple[OutPort, object], tuple[OutPort, SmallWeights]] = {}  # an embedding that is the head, too
        for matrix in ordered:
            if matrix not in rows:
                rows[matrix] = _rounded(graph, matrix, shared)
        graph.rt_info[ROUNDED_WEIGHTS] = tuple(rows[m] for m in ordered)
        return True


def _rounded(
    graph: Graph, matrix: Matrix, shared: dict[tuple[OutPort, object], tuple[OutPort, SmallWeights]]
) -> SmallWeights:
    """Round a matrix, or connect its node to the rounded matrix of another node."""
    key, port = (matrix.source, matrix.node.out_port().type.dtype), matrix.node.in_port(matrix.at)
    if not matrix.turned and key in shared:
        new_port, row = shared[key]
        port.connect(new_port)
        return row
    row = round_matrix(graph, matrix, GROUP)
    if not matrix.turned:
        shared[key] = matrix.source, row
    return row


def rounded_weights(rt_info: Mapping[str, object]) -> tuple[SmallWeights, ...]:
    """Return the matrices that `--weights` rounded, from the graph's information."""
    return cast("tuple[SmallWeights, ...]", rt_info.get(ROUNDED_WEIGHTS, ()))


def summary(rows: tuple[SmallWeights, ...], stored: int) -> str:
    """Return the number of matrices by bits, and their errors, in a line. `stored`: bytes of all weights."""
    bits = sorted({row.bits for row in rows})
    numbers = {n: sum(row.bits == n for row in rows) for n in bits}
    counts = ", ".join(f"{k} {'matrix' if k == 1 else 'matrices'} in {n} bits" for n, k in numbers.items())
    worst = max(rows, key=lambda row: row.error)
    mean = np.sqrt(np.average([row.error**2 for row in rows], weights=[np.prod(row.shape) for row in rows]))
    errors = f"error {mean:.4f}, largest {worst.error:.4f} in {worst.layer}"
    errors = errors if worst.error else "none of them is rounded"
    return f"weights: {counts}; {errors}; all weights take {size_text(stored)}"
