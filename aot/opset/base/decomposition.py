"""Parts that decompositions share: short floats are computed in f32 and rounded once; shapes are read from ports."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

import numpy as np

from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.ir.op import Op
from aot.ir.registry import operation
from aot.ir.types import Array
from aot.runtime.abi import DType


class Arithmetic:
    """Computes with arrays what a builder adds nodes for: `ARITHMETIC.Add(a, b)`."""

    def __getattr__(self, type: str) -> Callable[..., Array]:
        cls = operation(type)
        if cls is None:
            raise AttributeError(f"no operation {type!r}")
        return partial(self._evaluate, cls())

    @staticmethod
    def _evaluate(op: Op, *arrays: Array) -> Array:
        with np.errstate(all="ignore"):
            return op.evaluate(*arrays)[0]


ARITHMETIC = Arithmetic()


def widened(build: Builder, port: OutPort) -> OutPort:
    """Convert values to the compute type of their element type; sums are made in that type."""
    wide = port.type.dtype.compute
    return port if wide is port.type.dtype else build.Convert(port, destination_type=wide)


def narrowed(build: Builder, port: OutPort, dtype: DType) -> OutPort:
    """Convert the result to the type of the operation's output."""
    return port if port.type.dtype is dtype else build.Convert(port, destination_type=dtype)


def numbers(build: Builder, values: Iterable[int]) -> OutPort:
    """Return axes, shapes and the like as an i64 constant."""
    return build.const(np.array(list(values), np.int64), DType.I64)


def reshaped(build: Builder, port: OutPort, shape: Sequence[int]) -> OutPort:
    """Reshape; 0 keeps a dimension, -1 takes the remaining elements."""
    return build.Reshape(port, numbers(build, shape), special_zero=True)


def along_channels(build: Builder, vector: OutPort, rank: int) -> OutPort:
    """Reshape [C] to [C, 1, 1, ...], which broadcasts along axis 1 of a tensor of that rank."""
    return reshaped(build, vector, (-1, *[1] * (rank - 2)))


def wide(x: Array) -> Array:
    """Convert floats to double precision, for references."""
    return x.astype(np.float64)


def softmax_with_sink(build: Builder, scores: OutPort, sink: OutPort) -> OutPort:
    """Return the softmax along the last axis of the scores and one more, `sink`, which has no result of its own."""
    last = numbers(build, (-1,))
    top = build.Maximum(build.ReduceMax(scores, last, keep_dims=True), sink)
    powers = build.Exp(build.Subtract(scores, top))
    total = build.Add(build.ReduceSum(powers, last, keep_dims=True), build.Exp(build.Subtract(sink, top)))
    return build.Divide(powers, total)
