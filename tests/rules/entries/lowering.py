"""Rules that write an operation out with simpler ones, before lowering or before a model file is written."""

from __future__ import annotations

from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.passes.middle import decompose, decompress_weights, run_time_axes
from aot.runtime.abi import DType
from aot.writers.openvino import forms
from tests.cases import Tolerance
from tests.rules.proof import Entry, Pattern

DATA = "sizes or axes are data of the inference"
OWN_TESTS = "one rule for all operations with a decomposition: `tests/cases` compares each with its reference"


ROUNDED_TO_F16 = Tolerance("f16", 1e-3, 1e-3)


def ints(b: Builder, *numbers: int) -> OutPort:
    return b.const(numbers, DType.I64)


def quantized(low: float, high: float) -> Pattern:
    return Pattern(lambda b, x: b.FakeQuantize(x, low, high, low, high, levels=16), (("n=2", 3),))


def counts(b: Builder, x: OutPort) -> OutPort:
    """Ids of segments, which never fall, from any numbers."""
    steps = b.Minimum(b.Floor(b.Abs(x)), 1.0)
    ids = b.Convert(b.CumSum(steps, b.const(0, DType.I64)), destination_type=DType.I32)
    return b.SegmentMax(x, ids)


def counted(b: Builder, x: OutPort) -> OutPort:
    positive = b.Convert(b.ReduceLogicalAnd(b.Greater(x, 0.0), ints(b, 0)), destination_type=DType.F32)
    start, step = b.const(0.5, DType.F32), b.const(0.25, DType.F32)
    return b.Range(start, b.Add(positive, 1.0), step, output_type=DType.F32)


def single(b: Builder, x: OutPort) -> OutPort:
    boxes = b.const([[0.0, 0.0, 2.0, 2.5], [0.5, 1.0, 2.0, 2.0]], DType.F64)
    return b.ROIAlign(
        x, boxes, b.const([0, 1], DType.I32), pooled_h=2, pooled_w=2, sampling_ratio=2, spatial_scale=1.0, mode="avg"
    )


def axis_of_data(b: Builder, x: OutPort) -> OutPort:
    """0 or 1, which no pass can tell."""
    least = b.ReduceMin(b.Abs(x), ints(b, 0, 1))
    return b.Convert(b.Greater(least, 0.5), destination_type=DType.I64)


def decompressed(b: Builder, x: OutPort) -> OutPort:
    codes = b.const([[3, 7, 250], [1, 0, 9]], DType.U8)
    half = b.Convert(codes, destination_type=DType.F16)
    scaled = b.Multiply(b.Subtract(half, b.const(8, DType.F16)), b.const(0.1, DType.F16))
    return b.Add(x, b.Convert(scaled, destination_type=DType.F32))


def fixed_point(b: Builder, x: OutPort) -> OutPort:
    big = b.Multiply(x, 1_000_003)
    return b.FixedPointProduct(big, b.const(1 << 30, DType.I32), b.const(3, DType.I32))


def checked(b: Builder, x: OutPort) -> OutPort:
    found = b.InRange(axis_of_data(b, x), 0, 1, operation="Check", rule="small")
    return b.Add(x, b.Convert(found, destination_type=DType.F32))


ENTRIES = (
    Entry(
        decompose.quantize_in_steps,
        (quantized(-1.0, 2.0), quantized(0.0, 3.0), quantized(-0.7, 2.1)),
        why="it rounds to steps",
    ),
    Entry(
        decompose.decompose_operation,
        (
            Pattern(lambda b, x: b.MVN(x, ints(b, 1)), (("n=2", 4),)),
            Pattern(lambda b, x: b.LogSoftmax(x, axis=1), (("n=2", 4),)),
        ),
        why=OWN_TESTS,
    ),
    Entry(
        decompose.compute_in_single,
        (Pattern(single, ((2, 2, 3, 3),), DType.F64),),
        why="it rounds to f32",
    ),
    Entry(decompose.count_range, (Pattern(counted, ((4,),)),), why=DATA),
    Entry(decompose.count_segments, (Pattern(counts, ((6,),)),), why=DATA),
    Entry(
        run_time_axes.reduce_one_by_one,
        (
            Pattern(lambda b, x: b.ReduceSum(x, axis_of_data(b, x), keep_dims=True), ((2, 3),)),
            Pattern(lambda b, x: b.ReduceMax(x, axis_of_data(b, x), keep_dims=True), ((3, 3),)),
        ),
        why=DATA,
    ),
    Entry(
        run_time_axes.cumulate_in_the_middle,
        (Pattern(lambda b, x: b.CumSum(x, axis_of_data(b, x)), ((2, 3),)),),
        why=DATA,
    ),
    Entry(
        decompress_weights.decompress_in_single,
        (Pattern(decompressed, ((2, 3),)),),
        why="it leaves out a rounding to f16: results differ by that, and are the more exact ones",
        tolerance=ROUNDED_TO_F16,
    ),
    Entry(forms.give_form, (Pattern(lambda b, x: b.Erfc(x), (("n=2", 4),)),), why=OWN_TESTS),
    Entry(forms.drop_check, (Pattern(checked, ((2, 3),)),), why=DATA),
    Entry(
        forms.drop_mapping,
        (Pattern(lambda b, x: b.Broadcast(x, ints(b, 2, 3), ints(b, 0), mode="numpy"), ((3,),)),),
    ),
    Entry(
        forms.write_product_out,
        (Pattern(fixed_point, (("n=2", 3),), DType.I32),),
        why="shifts of bits",
    ),
)
