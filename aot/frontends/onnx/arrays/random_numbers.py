"""Random numbers of the right distribution, but not those of another runtime. The user must give a seed.

the user's seed, with the node's or its name  ->  key of Philox  ->  uniform  ->  normal, Bernoulli
"""

from __future__ import annotations

import math
from zlib import crc32

import numpy as np

from aot.frontends.onnx.registry import SHORT_FLOATS, OnnxNode, onnx
from aot.ir.graph import OutPort
from aot.runtime.abi import DType
from aot.runtime.errors import UnsupportedError

KEY_MASK = (1 << 64) - 1
DRAWN_TYPES = (*SHORT_FLOATS, DType.F32, DType.F64)


def _key(node: OnnxNode) -> int:
    """Return the generator's key: nodes with equal seeds draw equal numbers, the others differ by their names."""
    if node.seed is None:
        why = "the numbers would not be those of another runtime"
        raise UnsupportedError(f"{node.kind}: {why}: give them as an input, or have them drawn: --seed 1")
    if node.has("seed"):
        own = int(np.float32(node.number("seed")).view(np.uint32))
    else:
        origin = node.build.origin
        own = crc32("\n".join(origin.layers if origin is not None else ()).encode("utf-8", "surrogateescape"))
    return (node.seed << 32 | own) & KEY_MASK


def _uniform(node: OnnxNode, shape: OutPort, dtype: DType, stream: int = 0) -> OutPort:
    """Return uniform numbers in 0..1, 1 excluded; each stream has different numbers."""
    ends = (node.build.const(v, dtype) for v in (0.0, 1.0))
    return node.build.RandomUniform(shape, *ends, output_type=dtype, global_seed=_key(node), op_seed=stream + 1)


def _shape(node: OnnxNode, x: OutPort | None) -> OutPort:
    return node.list(node.integers("shape")) if x is None else node.dims(x, range(x.type.rank))


def _dtype(node: OnnxNode, x: OutPort | None) -> DType:
    dtype = node.dtype("dtype", DType.F32 if x is None else x.type.dtype)
    node.refuse(dtype not in DRAWN_TYPES, f"numbers of floating point are drawn, got {dtype.value}")
    return dtype


def _wide(dtype: DType) -> DType:
    return DType.F64 if dtype is DType.F64 else DType.F32


@onnx("RandomUniform", "RandomUniformLike")
def random_uniform(node: OnnxNode, x: OutPort | None = None, *, low: float = 0.0, high: float = 1.0) -> OutPort:
    build, dtype = node.build, _dtype(node, x)
    unit = _uniform(node, _shape(node, x), _wide(dtype))
    return node.cast(build.Add(build.Multiply(unit, high - low), low), dtype)


@onnx("RandomNormal", "RandomNormalLike")
def random_normal(node: OnnxNode, x: OutPort | None = None, *, scale: float = 1.0, mean: float = 0.0) -> OutPort:
    """sqrt(-2 log(1 - u)) cos(2 pi v), scaled; Box and Muller 1958."""
    build, dtype = node.build, _dtype(node, x)
    shape = _shape(node, x)
    u, v = (_uniform(node, shape, _wide(dtype), stream) for stream in range(2))
    size = build.Sqrt(build.Multiply(build.Log(build.Add(build.Negative(u), 1.0)), -2.0))
    unit = build.Multiply(size, build.Cos(build.Multiply(v, 2 * math.pi)))
    return node.cast(build.Add(build.Multiply(unit, scale), mean), dtype)


@onnx("Bernoulli")
def bernoulli(node: OnnxNode, x: OutPort) -> OutPort:
    """1 with probability x"""
    wide = _wide(x.type.dtype)
    drawn = node.build.Less(_uniform(node, _shape(node, x), wide), node.cast(x, wide))
    return node.cast(drawn, node.dtype("dtype", x.type.dtype))


@onnx("Multinomial")
def multinomial(node: OnnxNode, x: OutPort, *, sample_size: int = 1) -> OutPort:
    """Sample classes by each row of log-probabilities. Their exponentials need not sum up to 1."""
    build = node.build
    logs = build.Subtract(x, build.ReduceMax(x, node.list([-1]), keep_dims=True))
    return build.Multinomial(
        node.cast(logs, DType.F32),
        node.list([sample_size]),
        convert_type=node.dtype("dtype", DType.I32),
        with_replacement=True,
        log_probs=True,
        global_seed=_key(node),
        op_seed=node.seed or 0,
    )
