"""Steps run after those whose results they read, also where a value is made in parts."""

from __future__ import annotations

from aot.ir.build import Builder
from aot.ir.graph import OutPort
from tests.lowering.check import calls, compiled, conv, ints, weights


def test_dense_block() -> None:
    """Each part is read before the next is made, and all lie in one value."""

    def make(b: Builder, x: OutPort) -> OutPort:
        parts = [b.Relu(conv(b, x, 8, 1, begin=(0, 0)))]
        for seed in range(3):
            together = parts[0] if len(parts) == 1 else b.Concat(*parts, axis=1)
            parts.append(b.Relu(conv(b, together, 4, seed=seed)))
        return conv(b, b.Concat(*parts, axis=1), 6, 1, begin=(0, 0), seed=9)

    compiled(make, (1, 3, 6, 7))


def test_nested_concat() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        inner = b.Concat(b.MatMul(x, weights(b, 8, 8)), x, axis=0)
        outer = b.Concat(b.MatMul(inner, weights(b, 8, 8, seed=1)), inner, axis=0)
        return b.MatMul(outer, weights(b, 8, 5))

    compiled(make, (3, 8))


def test_a_part_is_read_elsewhere() -> None:
    def make(b: Builder, x: OutPort) -> tuple[OutPort, ...]:
        a, c = b.MatMul(x, weights(b, 8, 8)), b.MatMul(x, weights(b, 8, 8, seed=1))
        d = b.MatMul(b.Exp(a), c)
        return b.MatMul(b.Concat(a, c, d, axis=1), weights(b, 24, 4)), b.ReduceSum(a, ints(b, 0))

    compiled(make, (8, 8))


def test_overwritten_parts() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        y = b.MatMul(x, weights(b, 8, 8))
        halves = b.Split(y, b.const(1, ints(b, 1).type.dtype), num_splits=2, outputs=2).node
        swapped = b.Concat(halves.out_port(1), halves.out_port(0), axis=1)
        return b.MatMul(b.Tanh(swapped), y, transpose_b=True)

    compiled(make, (8, 8))


def test_steps_that_nobody_needs_do_not_run() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        b.Exp(b.MatMul(x, weights(b, 8, 8)))
        return b.Relu(x)

    assert calls(compiled(make, (8, 8))) == 1
