"""Compiles a small graph, compares what it computes with the references, and gives the compilation to look at."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from aot.codegen.ir.expressions import walk
from aot.codegen.ir.loops import Prim
from aot.codegen.ir.traverse import expressions
from aot.compilation.compilation import Compilation
from aot.compilation.driver import stages
from aot.compilation.jit import in_memory
from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.ir.interpret import interpret
from aot.options import CompileOptions
from aot.runtime.abi import DType
from tests.cases import LOOSE, Tolerance
from tests.passes.check import graph_of, values

Make = Callable[..., OutPort | tuple[OutPort, ...]]


def compiled(
    make: Make,
    *shapes: Sequence[int],
    tolerance: Tolerance = LOOSE,
    dtype: DType = DType.F32,
    target: str = "native",
    options: CompileOptions | None = None,
) -> Compilation:
    """All stages of the graph that `make(build, *ports)` makes; its results are those of the references."""
    graph = graph_of(make, *shapes, dtype=dtype)
    inputs = values(*shapes, dtype=dtype)
    expected = interpret(graph, inputs)
    made = stages(graph, options or CompileOptions(level=None, target=target))
    found = in_memory(made.built, threads=1)(*inputs)
    for n, y in enumerate(expected):
        assert found[n].shape == y.shape
        assert tolerance.allows(np.asarray(found[n]), y), f"output {n}: differs by {np.nanmax(np.abs(found[n] - y))}"
    return made


def calls(made: Compilation) -> int:
    """Return the number of kernel calls."""
    return len(made.program.calls)


def asks(made: Compilation) -> bool:
    """True if some expression still tests whether a read is in bounds."""
    works = [w for s in made.steps.steps for w in s.works]
    return any(isinstance(e, Prim) and e.fn == "within" for w in works for e in walk(*expressions(w)))


def ints(build: Builder, *numbers: int) -> OutPort:
    """Axes, shapes and the like."""
    return build.const(np.array(numbers, np.int64), DType.I64)


def weights(build: Builder, *shape: int, seed: int = 0) -> OutPort:
    """A constant of normally distributed numbers, scaled so that sums over all but the first dimension stay near 1."""
    depth = max(1, int(np.prod(shape[1:])))
    data = np.random.default_rng([seed, *shape]).normal(size=shape) / depth**0.5
    return build.const(data, DType.F32)


def conv(
    build: Builder,
    x: OutPort,
    channels: int,
    kernel: int = 3,
    *,
    stride: int = 1,
    begin: tuple[int, int] = (1, 1),
    end: tuple[int, int] | None = None,
    seed: int = 0,
) -> OutPort:
    """A square convolution, padded by `begin` and `end`."""
    w = weights(build, channels, x.type.static_shape[1], kernel, kernel, seed=seed)
    ends = begin if end is None else end
    return build.Convolution(x, w, strides=(stride, stride), pads_begin=begin, pads_end=ends, dilations=(1, 1))
