"""Operations that jump read f16 and bf16 values as memory would hold them: every step equals NumPy's, bit by bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from aot.compilation.driver import stages
from aot.compilation.jit import in_memory
from aot.ir.build import Builder
from aot.ir.graph import Origin, OutPort
from aot.opset.elementwise.conversion import converted
from aot.opset.reduction.sorting import Mode
from aot.options import CompileOptions
from aot.passes.middle.round_short_floats import round_short_floats
from aot.runtime.abi import DType
from tests.passes.check import graph_of

Array = np.ndarray[Any, np.dtype[Any]]
TYPES = {DType.F16: np.dtype(np.float16), DType.BF16: np.dtype(ml_dtypes.bfloat16)}
COUNT = 4096


def rounded(function: Callable[..., Any], *arrays: Array) -> Array:
    """`function` in f32, rounded to the arrays' type."""
    with np.errstate(all="ignore"):
        return np.asarray(function(*(a.astype(np.float32) for a in arrays))).astype(arrays[0].dtype)


def numbers(dtype: np.dtype[Any], wide: bool) -> list[Array]:
    """Two arrays: numbers near 1, or any finite numbers of the type, whose products overflow and underflow."""
    rng = np.random.default_rng(0)
    if not wide:
        return [(rng.standard_normal(COUNT) * 3).astype(dtype) for _ in range(2)]
    every = np.arange(1 << 16, dtype=np.uint16).view(dtype)
    return [rng.choice(every[np.isfinite(every.astype(np.float32))], COUNT) for _ in range(2)]


def reshaped(b: Builder, y: OutPort) -> OutPort:
    there = b.Transpose(b.Reshape(y, ints(b, 64, 64)), ints(b, 1, 0))
    return b.Reshape(b.Transpose(there, ints(b, 1, 0)), ints(b, COUNT))


def ints(b: Builder, *values: int) -> OutPort:
    return b.const(np.array(values), DType.I64)


Chain = tuple[Callable[..., OutPort], Callable[[Array, Array], Array]]
CHAINS: dict[str, Chain] = {
    "product": (lambda b, x, y: b.Multiply(x, y), lambda x, y: rounded(np.multiply, x, y)),
    "quotient": (lambda b, x, y: b.Divide(x, y), lambda x, y: rounded(np.divide, x, y)),
    "sum of products": (
        lambda b, x, y: b.Add(b.Multiply(x, y), y),
        lambda x, y: rounded(np.add, rounded(np.multiply, x, y), y),
    ),
    "moved": (lambda b, x, y: reshaped(b, b.Multiply(x, y)), lambda x, y: rounded(np.multiply, x, y)),
}

Jump = tuple[Callable[..., OutPort], Callable[[Array, Array], Array]]
JUMPS: dict[str, Jump] = {
    "IsInf": (lambda b, z, y: b.IsInf(z), lambda z, y: np.isinf(z)),
    "IsInf of f32": (
        lambda b, z, y: b.IsInf(b.Convert(z, destination_type=DType.F32)),
        lambda z, y: np.isinf(z),
    ),
    "IsNaN": (lambda b, z, y: b.IsNaN(z), lambda z, y: np.isnan(z)),
    "Greater": (lambda b, z, y: b.Greater(z, y), lambda z, y: z > y),
    "Equal": (lambda b, z, y: b.Equal(z, b.Floor(z)), lambda z, y: z == rounded(np.floor, z)),
    "Ceiling": (lambda b, z, y: b.Ceiling(z), lambda z, y: rounded(np.ceil, z)),
    "Round": (lambda b, z, y: b.Round(z), lambda z, y: rounded(np.rint, z)),
    "Sign": (lambda b, z, y: b.Sign(z), lambda z, y: rounded(np.sign, z)),
    "Convert": (lambda b, z, y: b.Convert(z, destination_type=DType.I32), lambda z, y: converted(z, DType.I32)),
    "Select": (
        lambda b, z, y: b.Select(b.Less(z, y), z, y),
        lambda z, y: np.where(z.astype(np.float32) < y.astype(np.float32), z, y),
    ),
    "TopK": (
        lambda b, z, y: b.TopK(z, b.const(5, DType.I64), axis=0, mode=Mode.MAX, outputs=2),
        lambda z, y: z[np.argsort(-np.nan_to_num(z.astype(np.float32), nan=-np.inf), kind="stable")[:5]],
    ),
}


@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize("dtype", TYPES)
def test_jumps_read_rounded_values(dtype: DType, chain: str) -> None:
    """Each jump has arithmetic and inputs of its own, so that nothing is stored before it."""
    make, reference = CHAINS[chain]

    def made(b: Builder, *ports: OutPort) -> tuple[OutPort, ...]:
        pairs = zip(ports[::2], ports[1::2], strict=True)
        return tuple(jump(b, make(b, p, q), q) for (p, q), (jump, _) in zip(pairs, JUMPS.values(), strict=True))

    graph = graph_of(made, *[(COUNT,)] * (2 * len(JUMPS)), dtype=dtype)
    model = in_memory(stages(graph, CompileOptions()).built, 1)
    for wide in (False, True):
        x, y = numbers(TYPES[dtype], wide)
        z, outputs = reference(x, y), model(*[x, y] * len(JUMPS))
        for n, (name, (_, meaning)) in enumerate(JUMPS.items()):
            if name == "TopK" and np.isnan(z.astype(np.float32)).any():
                continue
            found, wanted = np.asarray(outputs[n]), meaning(z, y)
            found = found.view(wanted.dtype) if found.dtype == np.uint16 else found
            np.testing.assert_array_equal(found.astype(np.float64), wanted.astype(np.float64), err_msg=name)


def test_arithmetic_alone_keeps_f32() -> None:
    graph = graph_of(lambda b, x: b.Add(b.Add(x, 1.0), 1.0), (1,), dtype=DType.F16)
    made = stages(graph, CompileOptions())
    assert not any(n.type == "Rounded" for n in made.optimized.order())
    assert in_memory(made.built, 1)(np.float16([2048]))[0] == 2050


def test_values_inside_of_a_layer_of_the_file_keep_f32() -> None:
    """The layer rounds its result alone."""

    def made(b: Builder, x: OutPort) -> OutPort:
        layer, other, last = (Builder(b.graph, Origin((name,))) for name in ("layer", "other", "last"))
        return last.Floor(other.Subtract(layer.Multiply(layer.Add(x, 1.0), x), x))

    graph = graph_of(made, (1,), dtype=DType.F16)
    assert round_short_floats(graph)
    sources = [n.in_port(0).get_source() for n in graph.order() if n.type == "Rounded"]
    assert [s.node.type for s in sources if s is not None] == ["Multiply", "Subtract"]
