"""A cache of keys and values, and one more row of each: copied once, and read as it lies."""

from __future__ import annotations

import numpy as np

from aot.ir.build import Builder
from aot.ir.graph import OutPort
from tests.lowering.check import compiled, conv, ints

HEADS, PAST, WIDTH = 4, 23, 16


def one_token(b: Builder, x: OutPort, keys: OutPort, values: OutPort) -> tuple[OutPort, OutPort, OutPort]:
    """Attention of one row, and what there is of keys and values now."""
    row = b.Reshape(x, ints(b, 1, HEADS, 1, WIDTH))
    k, v = b.Concat(keys, row, axis=2), b.Concat(values, row, axis=2)
    scores = b.Softmax(b.MatMul(row, k, transpose_a=False, transpose_b=True), axis=3)
    return b.MatMul(scores, v, transpose_a=False, transpose_b=False), k, v


def test_keys_and_values_are_written_where_the_results_are() -> None:
    past = (1, HEADS, PAST, WIDTH)
    made = compiled(one_token, (1, 1, HEADS * WIDTH), past, past)
    kinds = [call.kernel.split("_")[1] for call in made.program.calls]
    assert kinds.count("concat") == 2 * 2  # what was there, and the new row
    assert "result" not in kinds


def test_values_that_are_read_often_have_a_layout_of_their_own() -> None:
    """A picture of two parts that is a result, and what a convolution reads."""

    def make(b: Builder, x: OutPort, y: OutPort) -> tuple[OutPort, OutPort]:
        both = b.Concat(x, y, axis=1)
        return both, conv(b, both, 16)

    made = compiled(make, (1, 8, 9, 9), (1, 8, 9, 9))
    assert "result" in {call.kernel.split("_")[1] for call in made.program.calls}


def test_a_vector_does_not_turn_the_matrix() -> None:
    """The rows of keys stay rows: a product with one row reads each number once."""
    past = (1, HEADS, PAST, WIDTH)
    made = compiled(one_token, (1, 1, HEADS * WIDTH), past, past)
    layouts = {b.strides for k in made.program.kernels for b in k.buffers if b.shape == (1, HEADS, PAST + 1, WIDTH)}
    assert all(np.array_equal(s[1:], ((PAST + 1) * WIDTH, WIDTH, 1)) for s in layouts)
