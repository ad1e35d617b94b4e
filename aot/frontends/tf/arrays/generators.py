"""Numbers from nothing."""

from __future__ import annotations

import math
from zlib import crc32

import numpy as np

from aot.frontends.tf.registry import TfNode, tf
from aot.ir.graph import OutPort
from aot.opset.control.random_numbers import philox_words
from aot.runtime.abi import DType
from aot.runtime.errors import UnsupportedError

MASK = (1 << 64) - 1


@tf("Range")
def range_(node: TfNode, start: OutPort, limit: OutPort, step: OutPort) -> OutPort:
    scalars = (node.single(p) for p in (start, limit, step))
    return node.build.Range(*scalars, output_type=start.type.dtype)


@tf("LinSpace")
def lin_space(node: TfNode, start: OutPort, stop: OutPort, count: OutPort) -> OutPort:
    """`count` numbers, equally far apart; the last one is `stop`, unless there is one only."""
    build, size = node.build, node.cast(node.single(count), DType.I64)
    last = build.Subtract(size, 1)
    positions = build.Range(node.scalar(0), size, node.scalar(1), output_type=DType.I64)
    steps = node.cast(build.Maximum(last, 1), start.type.dtype)
    step = build.Divide(build.Subtract(stop, start), steps)
    port = build.Add(start, build.Multiply(step, node.cast(positions, start.type.dtype)))
    ends = build.LogicalAnd(build.Equal(positions, last), build.Greater(last, 0))
    return build.Select(ends, stop, port)


def _seeds(node: TfNode) -> tuple[int, int]:
    """Return TensorFlow's two seeds of an operation; the user's seeds if the file has none."""
    own = node.integer("seed") & MASK, node.integer("seed2") & MASK
    if any(own):
        return own
    if node.seed is None:
        why = "without a seed in the file, numbers are others in each run"
        raise UnsupportedError(f"{node.kind}: {why}: give them as an input, or have them drawn: --seed 1")
    origin = node.build.origin
    name = crc32("\n".join(origin.layers if origin is not None else ()).encode("utf-8", "surrogateescape"))
    return (node.seed << 32 | name) & MASK, 1


MIXING_KEY = 0x02461E293EC8F720  # key of the Philox block that turns a stateless operation's seeds into TensorFlow's


def _mixed(node: TfNode, seed: OutPort) -> tuple[int, int]:
    """Return the two seeds that TensorFlow makes of those of a stateless operation; UnsupportedError if they vary."""
    one, two = (int(v) & MASK for v in node.ints(seed, "seed"))
    words = [int(w) for w in philox_words(4, MIXING_KEY, two, first=one)]
    return words[1] << 32 | words[0], words[3] << 32 | words[2]


def _constant_seeds(node: TfNode, key: OutPort, counter: OutPort) -> tuple[int, int]:
    """Return the seeds that are a key and the second number of a counter; UnsupportedError unless its first is 0."""
    first, second = (int(v) & MASK for v in node.ints(counter, "counter"))
    node.refuse(first != 0, f"the counter begins with 0, got {first}")
    return int(node.ints(key, "key")[0]) & MASK, second


def _uniform(
    node: TfNode, shape: OutPort, dtype: DType, low: float, high: float, seeds: tuple[int, int] | None = None
) -> OutPort:
    ends = (node.build.const(v, dtype) for v in (low, high))
    first, second = _seeds(node) if seeds is None else seeds
    return node.build.RandomUniform(shape, *ends, output_type=dtype, global_seed=first, op_seed=second)


@tf("RandomUniform")
def random_uniform(node: TfNode, shape: OutPort) -> OutPort:
    return _fractions(node, shape, _seeds(node))


@tf("StatelessRandomUniform")
def stateless_uniform(node: TfNode, shape: OutPort, seed: OutPort) -> OutPort:
    return _fractions(node, shape, _mixed(node, seed))


@tf("StatelessRandomUniformV2")
def stateless_uniform_v2(node: TfNode, shape: OutPort, key: OutPort, counter: OutPort, algorithm: OutPort) -> OutPort:
    _require_philox(node, algorithm)
    return _fractions(node, shape, _constant_seeds(node, key, counter))


def _fractions(node: TfNode, shape: OutPort, seeds: tuple[int, int]) -> OutPort:
    """Return uniform numbers from 0 to below 1."""
    dtype = node.dtype("dtype")
    wide = dtype if dtype is DType.F64 else DType.F32
    return node.cast(_uniform(node, shape, wide if dtype.bits > 16 else dtype, 0.0, 1.0, seeds), dtype)


PHILOX = 1  # number of the algorithm
AUTOMATIC = 3  # Philox on CPUs


def _require_philox(node: TfNode, algorithm: OutPort) -> None:
    number = node.ints(algorithm, "the algorithm")[0]
    node.refuse(number not in (PHILOX, AUTOMATIC), f"numbers are drawn by Philox (1), got algorithm {number}")


@tf("StatelessRandomGetAlg")
def stateless_algorithm(node: TfNode) -> OutPort:
    return node.build.const(PHILOX, DType.I32)


@tf("StatelessRandomGetKeyCounter", "StatelessRandomGetKeyCounterAlg")
def key_and_counter(node: TfNode, seed: OutPort) -> tuple[OutPort, ...]:
    """The key, the counter and the algorithm of Philox."""
    build, (key, counter) = node.build, _mixed(node, seed)
    first = build.const(np.array([key], np.uint64), DType.U64)
    return first, build.const(np.array([0, counter], np.uint64), DType.U64), build.const(PHILOX, DType.I32)


@tf("RandomUniformInt")
def random_uniform_int(node: TfNode, shape: OutPort, low: OutPort, high: OutPort) -> OutPort:
    return _integers(node, shape, low, high, _seeds(node))


@tf("StatelessRandomUniformInt")
def stateless_uniform_int(node: TfNode, shape: OutPort, seed: OutPort, low: OutPort, high: OutPort) -> OutPort:
    return _integers(node, shape, low, high, _mixed(node, seed))


@tf("StatelessRandomUniformIntV2")
def stateless_uniform_int_v2(
    node: TfNode, shape: OutPort, key: OutPort, counter: OutPort, algorithm: OutPort, low: OutPort, high: OutPort
) -> OutPort:
    _require_philox(node, algorithm)
    return _integers(node, shape, low, high, _constant_seeds(node, key, counter))


def _integers(node: TfNode, shape: OutPort, low: OutPort, high: OutPort, seeds: tuple[int, int]) -> OutPort:
    """Return uniform integers from `low` to below `high`."""
    (first, second), dtype = seeds, low.type.dtype
    return node.build.RandomUniform(shape, low, high, output_type=dtype, global_seed=first, op_seed=second)


MIN_UNIFORM = 1e-7  # uniform numbers below count as this before a logarithm, as in TensorFlow


def _normal(node: TfNode, shape: OutPort, seeds: tuple[int, int]) -> OutPort:
    """Pairs of uniform numbers (u, v) become sqrt(-2 log u) (sin 2 pi v, cos 2 pi v); Box and Muller 1958."""
    build, one = node.build, node.list([1])
    sizes = node.cast(shape, DType.I64)
    count = build.ReduceProd(sizes, node.list([0]), keep_dims=True)
    pairs = build.Divide(build.Add(count, 1), 2)
    drawn = _uniform(node, build.Concat(pairs, node.list([2]), axis=0), DType.F32, 0.0, 1.0, seeds)
    u, v = build.Split(drawn, node.scalar(1), num_splits=2, outputs=2).node.out_ports().values()
    size = build.Sqrt(build.Multiply(build.Log(build.Maximum(u, MIN_UNIFORM)), -2.0))
    angle = build.Multiply(v, 2 * math.pi)
    both = build.Concat(build.Multiply(size, build.Sin(angle)), build.Multiply(size, build.Cos(angle)), axis=1)
    flat = build.Slice(build.Reshape(both, node.list([-1])), node.list([0]), count, one, node.list([0]))
    return build.Reshape(flat, sizes)


@tf("RandomStandardNormal")
def random_normal(node: TfNode, shape: OutPort) -> OutPort:
    return node.cast(_normal(node, shape, _seeds(node)), node.dtype("dtype"))


@tf("StatelessRandomNormal")
def stateless_normal(node: TfNode, shape: OutPort, seed: OutPort) -> OutPort:
    return node.cast(_normal(node, shape, _mixed(node, seed)), node.dtype("dtype"))


@tf("StatelessRandomNormalV2")
def stateless_normal_v2(node: TfNode, shape: OutPort, key: OutPort, counter: OutPort, algorithm: OutPort) -> OutPort:
    _require_philox(node, algorithm)
    return node.cast(_normal(node, shape, _constant_seeds(node, key, counter)), node.dtype("dtype"))


@tf("TruncatedNormal")
def truncated_normal(node: TfNode, shape: OutPort) -> OutPort:
    """Quantiles of uniform numbers between those of -2 and 2: of the right distribution."""
    build, edge = node.build, math.erf(2 / math.sqrt(2))
    drawn = _uniform(node, shape, DType.F32, -edge, edge)
    return node.cast(build.Multiply(build.ErfInv(drawn), math.sqrt(2)), node.dtype("dtype"))


@tf("Multinomial")
def multinomial(node: TfNode, logits: OutPort, count: OutPort) -> OutPort:
    first, second = _seeds(node)
    build = node.build
    logs = build.Subtract(logits, build.ReduceMax(logits, node.list([1]), keep_dims=True))
    return build.Multinomial(
        node.cast(logs, DType.F32),
        build.Reshape(node.cast(count, DType.I64), node.list([1])),
        convert_type=node.dtype("output_dtype"),
        with_replacement=True,
        log_probs=True,
        global_seed=first,
        op_seed=second,
    )
