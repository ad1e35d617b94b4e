"""Random numbers, for which the user must give a seed: of the right distribution, but not those of PyTorch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any
from zlib import crc32

from aot.frontends.pt2.registry import Call, Size, aten
from aot.ir.graph import OutPort
from aot.opset.reduction.sorting import Mode, Order
from runtime.abi import DType
from runtime.errors import UnsupportedError


def uniform(node: Call, shape: OutPort, dtype: DType, stream: int = 0) -> OutPort:
    """Uniform numbers in 0..1, 1 excluded; nodes and streams have different ones."""
    if node.seed is None:
        why = "the numbers would not be those of PyTorch"
        raise UnsupportedError(f"{node.kind}: {why}: give them as an input, or have them drawn: --seed 1")
    origin = node.build.origin
    own = crc32("\n".join(origin.layers if origin is not None else ()).encode("utf-8", "surrogateescape"))
    key = (node.seed << 32 | own) & ((1 << 64) - 1)
    wide = DType.F64 if dtype is DType.F64 else DType.F32
    ends = (node.build.const(v, wide) for v in (0.0, 1.0))
    return node.build.RandomUniform(shape, *ends, output_type=wide, global_seed=key, op_seed=stream + 1)


def normal(node: Call, shape: OutPort, dtype: DType) -> OutPort:
    """sqrt(-2 log(1 - u)) cos(2 pi v); Box and Muller 1958."""
    build = node.build
    u, v = (uniform(node, shape, dtype, stream) for stream in range(2))
    size = build.Sqrt(build.Multiply(build.Log(build.Add(build.Negative(u), 1.0)), -2.0))
    return build.Multiply(size, build.Cos(build.Multiply(v, 2 * math.pi)))


@aten("rand.default", "randn.default")
def rand(
    node: Call,
    size: Sequence[Size],
    dtype: DType | None = None,
    layout: str | None = None,
    device: Any = None,
    pin_memory: bool | None = None,
) -> OutPort:
    draw = normal if node.kind.startswith("randn") else uniform
    return draw(node, node.vector(size), node.dtype())


@aten("rand_like.default", "randn_like.default")
def rand_like(
    node: Call,
    x: OutPort,
    dtype: DType | None = None,
    layout: str | None = None,
    device: Any = None,
    pin_memory: bool | None = None,
    memory_format: str | None = None,
) -> OutPort:
    draw = normal if node.kind.startswith("randn") else uniform
    return draw(node, node.dims(x, range(x.type.rank)), node.dtype())


@aten("bernoulli.default", "bernoulli.p")
def bernoulli(node: Call, x: OutPort, p: float | None = None) -> OutPort:
    """1 with probability x, or p."""
    drawn = uniform(node, node.dims(x, range(x.type.rank)), x.type.dtype)
    chance = node.cast(x, drawn.type.dtype) if p is None else node.like(p, drawn)
    return node.build.Less(drawn, chance)


@aten("randperm.default")
def randperm(
    node: Call,
    n: Size,
    dtype: DType | None = None,
    layout: str | None = None,
    device: Any = None,
    pin_memory: bool | None = None,
) -> OutPort:
    """The order of as many uniform numbers."""
    drawn = uniform(node, node.vector([n]), DType.F32)
    fields = {"axis": 0, "mode": Mode.MIN, "sort": Order.VALUE, "index_element_type": DType.I64}
    return node.build.TopK(drawn, node.size(drawn, 0), **fields, outputs=2).node.out_port(1)
