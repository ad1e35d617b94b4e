"""Physical layout: orders, halos, pitches; results do not depend on them."""

from __future__ import annotations

import numpy as np
import pytest

from aot.codegen.ir.access import typical
from aot.codegen.ir.expressions import walk
from aot.codegen.ir.loops import Buffer, Expr, Prim
from aot.codegen.ir.program import MemoryRegion
from aot.codegen.ir.traverse import expressions, members
from aot.compilation.compilation import Compilation
from aot.compilation.driver import stages
from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.opset.products.pooling import Rounding
from aot.options import CompileOptions
from aot.runtime.abi import DType
from tests.lowering.check import asks, calls, compiled, conv, ints, weights
from tests.passes.check import graph_of


def buffers(made: Compilation) -> list[Buffer]:
    """Return the buffers of the intermediate values."""
    return [v.buffer for v in made.steps.values.values() if v.region is MemoryRegion.ARENA]


def test_channels_lie_innermost_between_convolutions() -> None:
    made = compiled(lambda b, x: conv(b, b.Relu(conv(b, x, 16)), 8), (1, 3, 7, 9))
    assert all(b.strides[1] == 1 for b in buffers(made))


def test_products_keep_their_columns_innermost() -> None:
    made = compiled(lambda b, x: b.MatMul(b.MatMul(x, weights(b, 6, 20)), weights(b, 20, 10)), (5, 6))
    assert all(b.strides == (20, 1) for b in buffers(made))


@pytest.mark.parametrize(
    ("begin", "end", "stride"),
    [
        ((0, 0), (0, 0), 1),
        ((1, 1), (1, 1), 2),
        ((2, 0), (0, 1), 1),
        ((0, 3), (2, 0), 2),
        ((0, 0), (1, 2), 1),
        ((2, 2), (2, 2), 2),
        ((1, 1), (1, 1), 1),
    ],
)
def test_pads_become_halos(begin: tuple[int, int], end: tuple[int, int], stride: int) -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        y = b.Relu(conv(b, x, 8, 1, begin=(0, 0)))
        return conv(b, y, 8, 3, stride=stride, begin=begin, end=end, seed=1)

    made = compiled(make, (1, 3, 6, 8))
    assert not asks(made)


@pytest.mark.parametrize("shape", [(1, 1, 6, 8), (1, 8, 1, 9), (1, 8, 9, 1), (1, 1, 1, 1), (2, 1, 5, 1), (3, 8, 1, 1)])
def test_dimensions_of_size_one(shape: tuple[int, ...]) -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        y = b.Relu(conv(b, x, 8))
        return conv(b, b.Concat(y, b.Sigmoid(y), axis=1), 1, seed=1)

    compiled(make, shape)


def test_readers_with_different_halos() -> None:
    def make(b: Builder, x: OutPort) -> tuple[OutPort, ...]:
        y = b.Relu(conv(b, x, 8))
        five = conv(b, y, 8, 5, begin=(2, 2), seed=1)
        one = conv(b, y, 8, 1, begin=(0, 0), seed=2)
        return b.Add(b.Add(five, one), conv(b, y, 8, 3, begin=(0, 2), end=(2, 0), seed=3)), b.ReduceSum(y, ints(b, 1))

    assert not asks(compiled(make, (1, 3, 6, 8)))


@pytest.mark.parametrize(("dilation", "stays"), [(40, False), (41, True)])
def test_a_halo_is_as_wide_as_its_dimension_at_most(dilation: int, stays: bool) -> None:
    """A window of 3x5 reaches 2 dilations to either side of 80 columns."""

    def make(b: Builder, x: OutPort) -> OutPort:
        y, w = b.Relu(conv(b, x, 8, 1, begin=(0, 0))), weights(b, 8, 8, 3, 5, seed=1)
        pads = (1, 2 * dilation)
        return b.Convolution(y, w, strides=(1, 1), pads_begin=pads, pads_end=pads, dilations=(1, dilation))

    assert asks(compiled(make, (1, 3, 6, 80))) is stays


def test_the_halo_holds_what_is_read_most() -> None:
    def make(b: Builder, x: OutPort) -> tuple[OutPort, ...]:
        y = conv(b, x, 8)
        sizes = {"strides": (1, 1), "kernel": (3, 3), "pads_begin": (1, 1), "pads_end": (1, 1)}
        return b.MaxPool(y, **sizes), conv(b, y, 8, seed=1)

    made = compiled(make, (1, 3, 6, 8))
    asking = [s.kind for s in made.steps.steps for w in s.works if any(_is_within(e) for e in walk(*expressions(w)))]
    assert asking == ["MaxPool"]


def _is_within(e: Expr) -> bool:
    return isinstance(e, Prim) and e.fn == "within"


def test_summands_of_a_convolution_have_its_layout() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        y = b.Relu(conv(b, x, 8))
        pooled = b.MaxPool(y, strides=(2, 2), kernel=(2, 2), pads_begin=(0, 0), pads_end=(0, 0))
        return b.Relu(conv(b, b.Add(conv(b, y, 8, 3, stride=2, seed=1), pooled), 8, seed=2))

    made = compiled(make, (1, 3, 8, 12))
    assert all(b.strides[1] == 1 for b in buffers(made))


def test_pools_that_want_another_value_outside() -> None:
    def make(b: Builder, x: OutPort) -> tuple[OutPort, ...]:
        y = conv(b, x, 8)
        sizes = {"strides": (1, 1), "kernel": (3, 3), "pads_begin": (1, 1), "pads_end": (1, 1)}
        return b.MaxPool(y, **sizes), b.AvgPool(y, **sizes), b.AvgPool(y, exclude_pad=False, **sizes)

    compiled(make, (1, 3, 6, 8))


@pytest.mark.parametrize("rounding", list(Rounding))
def test_max_pool_of_negative_numbers(rounding: Rounding) -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        y = b.Negative(b.Exp(conv(b, x, 8)))
        sizes = {"strides": (2, 2), "kernel": (3, 3), "pads_begin": (1, 1), "pads_end": (0, 1)}
        return conv(b, b.MaxPool(y, rounding_type=rounding, **sizes), 4, seed=1)

    compiled(make, (1, 3, 8, 9))


def test_rows_that_would_collide_in_the_cache_are_moved_apart() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        return b.MatMul(b.MatMul(x, weights(b, 4, 1024)), weights(b, 1024, 8))

    (between,) = buffers(compiled(make, (3, 4)))
    assert between.strides == (1024 + 16, 1)


@pytest.mark.parametrize(("columns", "pitch"), [(256, 32), (128, 0), (264, 0)])
def test_rows_that_tile_registers_read_lie_in_many_sets_of_the_cache(columns: int, pitch: int) -> None:
    """Rows of bf16: 512 bytes are moved apart; of 32 rows 256 bytes apart each set gets two."""

    def make(b: Builder, x: OutPort) -> OutPort:
        return b.MatMul(b.MatMul(x, weights(b, 64, columns)), weights(b, columns, 32))

    options = CompileOptions(level=None, target="x86-64-v4-amx", precision="bf16")
    made = stages(graph_of(make, (40, 64)), options)
    found = [b.strides for b in buffers(made) if b.shape == (40, columns)]
    assert found == [(columns + pitch, 1)]


def test_elements_of_a_normalised_key_lie_in_several_sets_of_the_cache() -> None:
    """A key of 32 elements, in windows of 64 tokens with 3 heads: 48 KiB apart, all of them would share one set."""

    def make(b: Builder, x: OutPort) -> OutPort:
        split = b.Reshape(b.MatMul(x, weights(b, 96, 288)), ints(b, 64, 64, 3, 3, 32))
        heads = b.Transpose(split, ints(b, 2, 0, 3, 1, 4))
        q, k, v = (b.Gather(heads, b.const(np.int64(n), DType.I64), ints(b, 0), batch_dims=0) for n in (0, 1, 2))
        q, k = (b.Divide(a, b.ReduceL2(a, ints(b, -1), keep_dims=True)) for a in (q, k))
        return b.MatMul(b.Softmax(b.MatMul(q, k, transpose_b=True), axis=-1), v)

    keys = [b for b in buffers(compiled(make, (64, 64, 96))) if b.shape == (64, 3, 64, 32) and b.strides[3] != 1]
    assert [b.strides for b in keys] == [(6144, 2048, 1, 64)]


def test_a_pitch_is_not_put_where_the_value_is_reshaped() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        y = b.Reshape(b.MatMul(x, weights(b, 4, 1024)), ints(b, 3, 2, 512))
        return b.MatMul(y, weights(b, 512, 8))

    compiled(make, (3, 4))


def test_a_product_of_inputs_reads_both_along_its_lanes() -> None:
    """The second input lies the other way round; where it is read often, it is copied first."""
    often = compiled(lambda b, x, y: b.MatMul(x, y, transpose_b=True), (40, 24), (32, 24))
    assert calls(often) == 2
    assert [b.strides for b in buffers(often)] == [(1, 32)]
    assert calls(compiled(lambda b, x, y: b.MatMul(x, y, transpose_b=True), (5, 24), (32, 24))) == 1


def test_a_pool_between_input_and_output_keeps_their_layout() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        return b.MaxPool(x, strides=(2, 2), pads_begin=(1, 1), pads_end=(1, 1), kernel=(3, 3))

    made = compiled(make, (2, 3, 9, 21))
    assert all(b.strides[3] == 1 for b in buffers(made))


@pytest.mark.parametrize(("kernel", "pad"), [(4, 1), (2, 0), (4, 0), (6, 2)])
def test_a_transposed_convolution_is_a_product_for_each_remainder(kernel: int, pad: int) -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        w, pads = weights(b, 12, 16, kernel, kernel), (pad, pad)
        return b.ConvolutionBackpropData(
            x, w, strides=(2, 2), pads_begin=pads, pads_end=pads, dilations=(1, 1), output_padding=(0, 0)
        )

    made = compiled(make, (1, 12, 5, 7))
    (axes,) = (d.axes for s in made.steps.steps for d in members(s.works[-1]) if d.reduction is not None)
    rows, columns = ((n - 1) * 2 + kernel - 2 * pad for n in (5, 7))
    assert {rows // 2, columns // 2} <= {a.extent for a in axes}


def test_tokens_of_a_picture_need_no_copy() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        y = b.Relu(conv(b, x, 8, 2, stride=2, begin=(0, 0)))
        tokens = b.Transpose(b.Reshape(y, ints(b, 1, 8, -1)), ints(b, 0, 2, 1))
        return b.MatMul(tokens, weights(b, 8, 12))

    made = compiled(make, (1, 3, 6, 8))
    assert calls(made) == 3
    assert made.steps.steps[1].writes()[0].strides[1] == 1


def test_heads_are_index_maps() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        def heads(seed: int) -> OutPort:
            y = b.MatMul(x, weights(b, 12, 12, seed=seed))
            return b.Transpose(b.Reshape(y, ints(b, 1, 5, 3, 4)), ints(b, 0, 2, 1, 3))

        scores = b.Softmax(b.MatMul(heads(1), heads(2), transpose_b=True), axis=3)
        together = b.Transpose(b.MatMul(scores, heads(3)), ints(b, 0, 2, 1, 3))
        return b.MatMul(b.Reshape(together, ints(b, 1, 5, 12)), weights(b, 12, 12, seed=4))

    assert calls(compiled(make, (1, 5, 12))) <= 8


@pytest.mark.parametrize(("tokens", "copies"), [(40, 1), (12, 0)])
def test_keys_that_lie_with_queries_and_values_are_copied(tokens: int, copies: int) -> None:
    """One product computes all three, with contiguous features; scores of many tokens want contiguous tokens."""

    def make(b: Builder, x: OutPort) -> OutPort:
        three = b.Reshape(b.MatMul(x, weights(b, 48, 144)), ints(b, tokens, 3, 3, 16))
        turned = b.Transpose(three, ints(b, 1, 2, 0, 3))
        q, k, v = (b.Gather(turned, ints(b, n), ints(b, 0)) for n in range(3))
        q, k, v = (b.Reshape(part, ints(b, 3, tokens, 16)) for part in (q, k, v))
        return b.MatMul(b.Softmax(b.MatMul(q, k, transpose_b=True), axis=-1), v)

    made = compiled(make, (tokens, 48))
    assert made.groups.count("_transpose: ") == copies
    assert ("lanes[k:" in made.groups) == (not copies)


def test_scores_in_a_group_have_lanes_along_their_rows() -> None:
    """Scaled queries could lie in columns, but scores that stay in a group lie in rows, so keys are copied."""
    heads, tokens = 8, 220  # scores of 1.5 MB

    def make(b: Builder, x: OutPort, bias: OutPort) -> OutPort:
        three = b.Reshape(b.MatMul(x, weights(b, 32, 384)), ints(b, tokens, 3, heads, 16))
        turned = b.Transpose(three, ints(b, 1, 2, 0, 3))
        q, k, v = (b.Gather(turned, b.const(n, DType.I64), b.const(0, DType.I64)) for n in range(3))
        scores = b.MatMul(b.Multiply(q, 0.25), k, transpose_b=True)
        return b.MatMul(b.Softmax(b.Add(scores, bias), axis=-1), v)

    made = compiled(make, (tokens, 32), (heads, tokens, tokens), target="x86-64-v3")
    assert "group chain" in made.groups
    assert any(name.endswith(".keys") for name in made.steps.values)


def test_states_of_a_recurrence_are_not_copied_ahead() -> None:
    """The reset state is a factor of a product of data, and strided there."""

    def make(b: Builder, x: OutPort, w: OutPort, r: OutPort, bias: OutPort) -> tuple[OutPort, ...]:
        state, ends = b.const(np.zeros((2, 1, 2), np.float32), DType.F32), b.const(np.array([3, 2]), DType.I32)
        return b.GRUSequence(x, state, ends, w, r, bias, hidden_size=2, outputs=2)

    names = ("a=2", "b=3", "c=2"), ("d=1", "e=6", "c=2"), ("f=1", "g=6", "h=2"), ("i=1", "j=6")
    made = compiled(make, *names)
    assert not any(name.endswith(".keys") for name in made.steps.values)


def test_the_lanes_of_a_head_are_its_own_features() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        rows = b.Transpose(b.Reshape(x, ints(b, 1, 20, 3, 32)), ints(b, 0, 2, 1, 3))
        return b.MatMul(b.Softmax(b.MatMul(rows, rows, transpose_b=True), axis=3), rows)

    made = compiled(make, (1, 20, 96))
    weights_of_rows = [b for b in buffers(made) if b.shape == (1, 3, 20, 20)]
    assert weights_of_rows
    assert all(b.strides[-1] == 1 for b in weights_of_rows), "nobody scatters what the softmax gives"


def test_shuffled_channels() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        y = conv(b, x, 8)
        grouped = b.Transpose(b.Reshape(y, ints(b, 1, 2, 4, 6, 8)), ints(b, 0, 2, 1, 3, 4))
        return conv(b, b.Reshape(grouped, ints(b, 1, 8, 6, 8)), 4, seed=1)

    compiled(make, (1, 3, 6, 8))


@pytest.mark.parametrize("channels", [1, 3, 16])
def test_depthwise_convolutions(channels: int) -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        y = b.Relu(conv(b, x, channels, 1, begin=(0, 0)))
        w = weights(b, channels, 1, 1, 3, 3)
        ends = {"pads_begin": (1, 1), "pads_end": (1, 1), "dilations": (1, 1)}
        return conv(b, b.Relu(b.GroupConvolution(y, w, strides=(1, 1), **ends)), 4, 1, begin=(0, 0), seed=1)

    assert asks(compiled(make, (1, 3, 7, 6))) == (channels == 16)  # of a low picture, for whole rows
    assert not asks(compiled(make, (1, 3, 24, 6)))


def rows_around(made: Compilation) -> list[int]:
    """Return the number of halo rows above the first row, for each buffer with a halo."""
    return [typical(b.origin) // typical(b.strides[2]) for b in buffers(made) if b.halo is not None]


@pytest.mark.parametrize(
    ("size", "stride", "dilation", "begin", "end", "height"),
    [
        (3, 1, 1, (1, 1), (1, 1), 9),
        (5, 2, 1, (1, 2), (2, 2), 3),
        (3, 1, 3, (3, 3), (3, 3), 9),
        (7, 1, 1, (3, 3), (3, 3), 3),
        (3, 2, 1, (0, 1), (2, 0), 3),
    ],
)
def test_a_low_picture_has_no_rows_around(
    size: int, stride: int, dilation: int, begin: tuple[int, int], end: tuple[int, int], height: int
) -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        y = b.Add(conv(b, x, 24, 1, begin=(0, 0)), 1.0)
        w = weights(b, 24, 1, 1, size, size)
        steps = {"strides": (stride, stride), "dilations": (dilation, dilation)}
        return conv(b, b.GroupConvolution(y, w, **steps, pads_begin=begin, pads_end=end), 4, 1, begin=(0, 0), seed=1)

    made = compiled(make, (2, 3, height, 20))
    assert asks(made) and rows_around(made) == [0]
    assert "skip_padding[kh]" in made.groups and "within" not in made.loops()


def test_rows_that_another_reader_needs_are_there() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        y = b.Relu(conv(b, x, 16, 1, begin=(0, 0)))
        ends = {"pads_begin": (1, 1), "pads_end": (1, 1), "dilations": (1, 1)}
        apart = b.GroupConvolution(y, weights(b, 16, 1, 1, 3, 3), strides=(1, 1), **ends)
        return b.Add(apart, conv(b, y, 16, stride=1, seed=1))

    made = compiled(make, (1, 3, 7, 9))
    assert not asks(made) and rows_around(made) == [1]


def test_rows_of_volumes() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        w = weights(b, 16, 1, 1, 3, 3, 3)
        steps = {"strides": (1,) * 3, "dilations": (1,) * 3, "pads_begin": (1,) * 3, "pads_end": (1,) * 3}
        return b.Relu(b.GroupConvolution(b.Relu(x), w, **steps))

    made = compiled(make, (1, 16, 4, 5, 9))
    assert asks(made) and rows_around(made) == [0]
