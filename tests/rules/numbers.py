"""Property tests of rules: a graph computes the same before and after, on edge values and on noise of many sizes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from aot.ir.copies import copy_graph
from aot.ir.interpret import interpret
from aot.ir.types import Array, numpy_dtype
from tests.passes.check import Size
from tests.rules.proof import Entry, Pattern

EDGES = (0.0, -0.0, 1.0, -1.0, 1e-3, -40.0, 40.0, 1e-40, np.nan)
DRAWS = 6


def samples(pattern: Pattern) -> Iterator[list[Array]]:
    """Give inputs of one edge value each, and noise of several scales and sizes."""
    dtype = numpy_dtype(pattern.dtype)
    for edge in EDGES:
        if dtype.kind == "f" or float(edge).is_integer():
            yield [np.full(sized(shape, 2), edge, dtype) for shape in pattern.shapes]
    for seed in range(DRAWS):
        noise = np.random.default_rng(seed)
        scale = (0.5, 4.0, 50.0)[seed % 3]
        yield [(noise.uniform(-scale, scale, sized(s, 1 + seed))).astype(dtype) for s in pattern.shapes]


def sized(shape: tuple[Size, ...], draw: int) -> tuple[int, ...]:
    """Return a shape in which symbolic sizes have numbers: equal names have equal ones."""
    return tuple(n if isinstance(n, int) else 1 + (draw * len(n) + ord(n[0])) % 5 for n in shape)


def differences(entry: Entry, pattern: Pattern) -> Iterator[str]:
    """Give a line for each sample on which the rule changes what the graph computes."""
    before, after = pattern.graphs(entry.rule)
    for inputs in samples(pattern):
        pairs = zip(interpret(copy_graph(before), inputs), interpret(copy_graph(after), inputs), strict=True)
        for expected, found in pairs:
            if expected.shape != found.shape or not entry.tolerance.allows(found, expected):
                yield f"{entry.rule.name} on {[a.reshape(-1)[:3] for a in inputs]}: {expected} became {found}"
