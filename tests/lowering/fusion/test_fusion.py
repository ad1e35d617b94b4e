"""Fusion: how many kernels are left, and that they compute what the operations say."""

from __future__ import annotations

from aot.codegen.ir.traverse import reads
from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.runtime.abi import DType
from tests.lowering.check import calls, compiled, conv, ints, weights


def test_elementwise_operations_are_one_kernel() -> None:
    made = compiled(lambda b, x, y: b.Tanh(b.Multiply(b.Sigmoid(b.Add(x, y)), x)), (3, 5), (3, 1))
    assert calls(made) == 1


def test_views_are_read_in_place() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        turned = b.Transpose(x, ints(b, 0, 2, 1))
        part = b.Slice(turned, ints(b, 1), ints(b, 4), ints(b, 1), ints(b, 1))
        return b.Relu(b.Reshape(part, ints(b, 2, -1)))

    assert calls(compiled(make, (2, 3, 5))) == 1


def test_views_are_read_in_place_by_products() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        y = b.MatMul(x, weights(b, 9, 32))
        heads = b.Transpose(b.Reshape(y, ints(b, 6, 4, 8)), ints(b, 1, 0, 2))
        return b.MatMul(heads, heads, transpose_b=True)

    assert calls(compiled(make, (6, 9))) == 2


def test_a_view_of_a_view_with_several_readers() -> None:
    def make(b: Builder, x: OutPort) -> tuple[OutPort, ...]:
        turned = b.Transpose(b.Reshape(b.MatMul(x, x), ints(b, 4, 3, 3)), ints(b, 2, 0, 1))
        return b.Exp(turned), b.ReduceSum(turned, ints(b, 0))

    assert calls(compiled(make, (6, 6))) == 3


def test_broadcast_and_tile_are_inlined() -> None:
    def make(b: Builder, x: OutPort, y: OutPort) -> tuple[OutPort, ...]:
        return b.Add(b.Broadcast(x, ints(b, 4, 6)), b.Tile(y, ints(b, 2, 3)))

    assert calls(compiled(make, (1, 6), (2, 2))) == 1


def test_epilogue_of_a_product() -> None:
    def make(b: Builder, x: OutPort, r: OutPort) -> OutPort:
        return b.Relu(b.Add(b.Add(b.MatMul(x, weights(b, 8, 16)), weights(b, 16)), r))

    made = compiled(make, (5, 8), (5, 16))
    assert calls(made) == 1
    (step,) = made.steps.steps
    assert step.definition is not None and step.definition.reduction is not None


def test_epilogue_of_a_convolution_through_a_view() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        y = b.Relu(b.Add(conv(b, x, 8), weights(b, 1, 8, 1, 1)))
        return b.Transpose(b.Reshape(y, ints(b, 1, 8, -1)), ints(b, 0, 2, 1))

    made = compiled(make, (1, 4, 6, 5))
    assert [s.kind for s in made.steps.steps] == ["Parameter", "Convolution", "Result"]
    assert len(made.steps.steps[1].layers) == 3


def test_a_product_with_two_readers_is_kept() -> None:
    def make(b: Builder, x: OutPort) -> tuple[OutPort, ...]:
        y = b.MatMul(x, weights(b, 8, 16))
        return b.Exp(y), b.Tanh(y)

    assert calls(compiled(make, (5, 8))) == 3


def test_a_cheap_producer_is_computed_by_each_reader() -> None:
    def make(b: Builder, x: OutPort) -> tuple[OutPort, ...]:
        y = b.Add(x, b.const(1.5, x.type.dtype))
        return b.Exp(y), b.Tanh(y)

    assert calls(compiled(make, (5, 8))) == 2


def test_a_costly_producer_is_computed_once() -> None:
    def make(b: Builder, x: OutPort) -> tuple[OutPort, ...]:
        y = b.Exp(b.Sin(x))
        return b.Sqrt(y), b.Log(y)

    assert calls(compiled(make, (5, 8))) == 3


def test_a_product_reads_what_was_computed_once() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        return b.MatMul(b.Exp(x), weights(b, 8, 16))

    assert calls(compiled(make, (5, 8))) == 2


def test_parts_of_a_concat_are_made_in_place() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        parts = [conv(b, x, n, seed=n) for n in (3, 5, 8)]
        return conv(b, b.Concat(*parts, axis=1), 4, 1, begin=(0, 0))

    made = compiled(make, (1, 4, 6, 6))
    assert calls(made) == 5  # the input's copy, three parts, the last convolution
    parts = made.steps.steps[1:4]
    assert len({b.name for s in parts for b in s.writes()}) == 1


def test_one_value_twice_in_a_concat() -> None:
    compiled(lambda b, x: b.Exp(b.Concat(b.MatMul(x, x), x, b.MatMul(x, x), axis=0)), (4, 4))

    def make(b: Builder, x: OutPort) -> OutPort:
        y = b.MatMul(x, weights(b, 4, 4))
        return b.MatMul(b.Concat(y, y, axis=0), weights(b, 4, 6))

    compiled(make, (4, 4))


def test_parts_of_a_split_are_read_in_place() -> None:
    def parts(b: Builder, x: OutPort) -> OutPort:
        y = b.MatMul(x, weights(b, 6, 12))
        node = b.Split(y, b.const(1, ints(b, 1).type.dtype), num_splits=2, outputs=2).node
        return b.MatMul(node.out_port(0), node.out_port(1), transpose_b=True)

    made = compiled(parts, (5, 6))
    assert calls(made) == 2
    assert len({x.buffer.name for x in reads(made.steps.steps[1].works[0])}) == 1


def test_padding_between_convolutions() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        y = conv(b, x, 8, seed=1)
        padded = b.Pad(y, ints(b, 0, 0, 1, 0), ints(b, 0, 0, 2, 1), b.const(0.0, x.type.dtype))
        return conv(b, padded, 4, begin=(0, 0))

    compiled(make, (1, 3, 6, 6))


def test_gather_of_constant_rows() -> None:
    def make(b: Builder, x: OutPort) -> tuple[OutPort, ...]:
        return b.Relu(b.Gather(x, ints(b, 2, 0, 0), b.const(1, ints(b, 0).type.dtype)))

    assert calls(compiled(make, (3, 4, 2))) == 1


def test_an_input_is_a_result() -> None:
    made = compiled(lambda b, x: (x, b.Transpose(x, ints(b, 1, 0)), b.Relu(x), x), (3, 4))
    assert calls(made) == 4


def test_loops_write_into_the_result() -> None:
    made = compiled(lambda b, x: b.TopK(x, b.const(3, DType.I64), axis=1, outputs=2), (4, 9))
    assert [s.kind for s in made.steps.steps] == ["TopK"]


def test_end_of_a_nest_merges_with_its_consumer() -> None:
    """Interleaved planes and what is done to them are one kernel."""
    made = compiled(lambda b, x: b.Relu(b.DFT(x, ints(b, 1))), (4, 64, 2))
    assert [s.kind for s in made.steps.steps] == ["DFT", "Result"]


def test_rows_that_data_choose_are_copied_where_they_lie_across() -> None:
    """Channels of the points of a grid lie side by side in a copy; few points read the picture as it is."""
    many = compiled(lambda b, x, y: b.GridSample(x, y), (1, 16, 4, 4), (1, 8, 8, 2))
    few = compiled(lambda b, x, y: b.GridSample(x, y), (1, 16, 16, 16), (1, 2, 2, 2))
    assert (calls(many), calls(few)) == (2, 1)


def test_values_of_loops_are_read_from_the_result() -> None:
    def make(b: Builder, x: OutPort) -> tuple[OutPort, ...]:
        best = b.TopK(x, b.const(3, DType.I64), axis=1, outputs=2)
        return best, b.Exp(best), best

    made = compiled(make, (4, 9))
    assert [s.kind for s in made.steps.steps] == ["TopK", "Result", "Result"]


def test_a_reduction_is_not_fused_into_an_index() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        least = b.ReduceMin(b.Convert(x, destination_type=DType.I64), ints(b, 1))
        return b.Gather(weights(b, 9), b.FloorMod(least, b.const(9, DType.I64)), b.const(0, DType.I64))

    made = compiled(make, (4, 5))
    assert calls(made) == 1  # a group: the rows of the minimum, then what it chooses
