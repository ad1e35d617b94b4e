"""Cases of aot/opset/estimators/trees.py: each form, NaN, ties with thresholds, several targets."""

from __future__ import annotations

import numpy as np

from aot.ir.types import Array
from aot.opset.estimators.trees import Aggregate, TreeEnsemble
from aot.runtime.abi import DType
from tests.cases import EXACT, Case

FEATURES = 5
THRESHOLDS = np.array([-2.5, -1.0, -0.0, 0.0, 0.5, 1.0, np.inf, -np.inf, np.nan])


def grown(seed: int, trees: int, leaves: int, width: int, targets: int, dtype: type[np.floating]) -> list[Array]:
    """Tables of random trees, whose nodes ask for thresholds that rows hit, and send NaN to either side."""
    rng = np.random.default_rng(seed)
    children, roots, used = [], [], 0
    for _ in range(trees):
        at, open_ends = len(children), []
        roots.append(at if leaves > 1 else ~used)
        if leaves > 1:
            children.append([0, 0])
            open_ends = [(at, 0), (at, 1)]
        while 1 < len(open_ends) < leaves:
            node, side = open_ends.pop(int(rng.integers(len(open_ends))))
            children[node][side] = len(children)
            open_ends += [(len(children), 0), (len(children), 1)]
            children.append([0, 0])
        for number, (node, side) in enumerate(open_ends):
            children[node][side] = ~(used + number)
        used += leaves
    nodes = len(children)
    return [
        rng.integers(0, FEATURES, nodes).astype(np.int32),
        rng.choice(THRESHOLDS, nodes).astype(dtype),
        np.array(children, np.int32).reshape(-1, 2),
        rng.integers(0, 2, nodes).astype(np.bool_),
        np.array(roots, np.int32),
        rng.integers(-8, 8, (used, width)).astype(dtype) / 4,
        rng.integers(0, targets - width + 1, trees).astype(np.int32),
    ]


def rows(count: int, dtype: type[np.floating]) -> Array:
    values = [*THRESHOLDS, 0.25, -0.75, 3.0, np.finfo(dtype).smallest_subnormal, -np.finfo(dtype).smallest_subnormal]
    return np.random.default_rng(count).choice(np.array(values, dtype), (count, FEATURES))


def case(seed: int, trees: int, leaves: int, width: int = 1, targets: int = 1, **how: object) -> list[Case]:
    """Cases of one ensemble: constant rows, a size known when compiling, and one known at run time."""
    dtype = np.float64 if how.get("dtype") is DType.F64 else np.float32
    kind, tables = how.get("dtype", DType.F32), grown(seed, trees, leaves, width, targets, dtype)
    op = TreeEnsemble(targets, how.get("aggregate", Aggregate.SUM))
    inputs = (rows(13, dtype), (kind, (1, FEATURES)), (kind, ("n=37", FEATURES)))
    return [Case(op, [x, *tables], EXACT, -3.0, 3.0) for x in inputs]


CASES = [
    *case(1, 3, 8),  # complete
    *case(2, 9, 31),  # small enough for masks
    *case(3, 4, 40, 3, 3),  # linked, all targets in each leaf
    *case(4, 17, 6, 1, 4),  # a target for each tree
    *case(5, 5, 12, 2, 5),
    *case(6, 3, 1),  # leaves alone
    *case(7, 10, 20, dtype=DType.F64),
    *case(8, 10, 50, 12, 12, dtype=DType.F64),
    *case(9, 6, 9, aggregate=Aggregate.MIN),
    *case(10, 6, 9, 2, 2, aggregate=Aggregate.MAX),
]
