"""The cases of docs/use/migrate/differences.md: where OpenVINO's CPU plugin does not do what the specification says."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from aot.codegen.ir.loops import Var
from aot.compilation.driver import compile_model
from aot.ir.graph import Graph, OutPort
from aot.ir.op import Op
from aot.ir.types import Array, dtype_of
from aot.opset.control.infrastructure import Constant, Parameter, Result
from aot.opset.detection.suppression.class_suppression import MatrixNms, MulticlassNms
from aot.opset.detection.suppression.selection import Sorting
from aot.opset.detection.suppression.suppression import NonMaxSuppression
from aot.opset.elementwise.activation import Clamp, PRelu
from aot.opset.elementwise.binary import Add, AutoBroadcast, Divide, Power, SquaredDifference, Subtract
from aot.opset.elementwise.quantization import FakeConvert, FakeQuantize, Float8
from aot.opset.elementwise.unary import Abs, Sqrt
from aot.opset.image.resize import Interpolate_11, ShapeFrom
from aot.opset.image.resize_weights import Coordinates, Mode
from aot.opset.movement.blocks import SpaceToBatch
from aot.opset.movement.embedding import Bag, EmbeddingBagOffsets
from aot.opset.movement.gather import GatherTree
from aot.opset.movement.padding import Pad
from aot.opset.movement.scatter import Combination, ScatterElementsUpdate, SliceScatter
from aot.opset.movement.slicing import StridedSlice
from aot.opset.products.convolution import Convolution
from aot.opset.products.deconvolution import ConvolutionBackpropData
from aot.opset.products.pool_windows import AutoPad, Rounding
from aot.opset.products.pooling import AvgPool, MaxPool_8
from aot.opset.recurrent.ctc import CTCLoss
from aot.opset.reduction.nonzero import Unique
from aot.opset.reduction.normalization import LRN
from aot.opset.reduction.reduction import ReduceL1, ReduceL2, ReduceMax, ReduceMean, ReduceProd
from aot.opset.reduction.segments import Fill, SegmentMax
from aot.opset.signal.spectrum import RDFT
from aot.options import CompileOptions
from aot.runtime.abi import DType

PAGE = Path(__file__).parents[2] / "docs" / "use" / "migrate" / "differences.md"


def run(
    op: Op, given: Sequence[Array], constants: Sequence[Array] = (), dynamic: bool = False, outputs: int = 1
) -> Array:
    """The compiled operation's first result; `constants` follow the inputs that are given."""
    return run_all(op, given, constants, dynamic, outputs)[0]


def run_all(
    op: Op, given: Sequence[Array], constants: Sequence[Array] = (), dynamic: bool = False, outputs: int = 2
) -> list[Array]:
    graph, ports = Graph("difference"), list[OutPort]()
    for k, array in enumerate(given):
        shape = tuple(Var(f"n{k}_{a}") for a in range(array.ndim)) if dynamic else array.shape
        node = graph.add(Parameter(element_type=dtype_of(array), shape=shape), name=f"x{k}")
        ports.append(node.out_port(0))
    for k, array in enumerate(constants):
        node = graph.add(Constant(element_type=dtype_of(array)), name=f"c{k}", data=array)
        ports.append(node.out_port(0))
    for port in graph.add(op, *ports, name="op", outputs=outputs).out_ports().values():
        graph.add(Result(), port)
    results = compile_model(graph, CompileOptions(level=None), threads=1)(*given)
    return [np.asarray(results[n]) for n in range(outputs)]


def noise(*shape: int) -> Array:
    return np.random.default_rng(1).normal(size=shape).astype(np.float32)


def test_floor_division() -> None:
    found = run(Divide(), [np.array([-7, 7, -8], np.int32), np.array([2, -2, 2], np.int32)])
    assert found.tolist() == [-4, -4, -4]


def test_short_integers_wrap() -> None:
    assert run(Subtract(), [np.array([0], np.uint8), np.array([1], np.uint8)]).tolist() == [255]
    assert run(Add(), [np.array([127], np.int8), np.array([1], np.int8)]).tolist() == [-128]
    assert run(SquaredDifference(), [np.array([13], np.int8), np.array([0], np.int8)]).tolist() == [-87]
    assert run(Power(), [np.array([-3], np.int8), np.array([5], np.int8)]).tolist() == [13]


def test_clamp_of_unsigned() -> None:
    assert run(Clamp(-2.4, -1.5), [np.array([0, 3], np.uint32)]).tolist() == [0, 0]


def test_doubles_stay_doubles() -> None:
    found = run(Sqrt(), [np.array([2.0, 1e300, np.inf])])
    assert np.array_equal(found, np.sqrt([2.0, 1e300, np.inf]))


def test_fake_quantize_on_its_grid() -> None:
    low, high = np.array([[[-0.6, -2.4]]], np.float32), np.array([[[2.3, 1.1]]], np.float32)
    limits = [np.array(-2.5, np.float32), np.array(0.87, np.float32), low, high]
    found = run(FakeQuantize(255), [noise(4, 3, 2)], limits)
    place = (found - low) / (high - low) * 254
    assert np.allclose(place, np.rint(place), atol=1e-3)


def test_pdpd_with_dynamic_shapes() -> None:
    a, b = noise(2, 3, 4), noise(3)
    found = run(Add(AutoBroadcast.PDPD, 1), [a, b], dynamic=True)
    assert np.array_equal(found, a + b[:, None])


def test_prelu_with_dynamic_shapes() -> None:
    x, slope = noise(6, 2, 3, 5), noise(5)
    assert np.array_equal(run(PRelu(), [x], [slope], dynamic=True), np.where(x < 0, x * slope, x))


def test_gather_tree_without_steps() -> None:
    steps = np.zeros((3, 1, 2), np.int32)
    found = run(GatherTree(), [steps, steps, np.array([0], np.int32), np.array(9, np.int32)])
    assert (found == 9).all()


def test_mean_of_an_empty_bag() -> None:
    table, indices, starts = noise(4, 5), np.array([2], np.int32), np.array([0, 1], np.int32)
    found = run(EmbeddingBagOffsets(Bag.MEAN), [table, indices, starts, np.array(3, np.int32)])
    assert np.array_equal(found, table[[2, 3]])


def test_space_to_batch_of_channels() -> None:
    x = noise(2, 1, 4, 3, 2)
    sizes = [np.array(v) for v in ([1, 2, 2, 2, 1], [0, 0, 2, 1, 2], [0, 1, 0, 0, 0])]
    padded = np.pad(x, [(0, 0), (0, 1), (2, 0), (1, 0), (2, 0)]).reshape(2, 1, 2, 3, 2, 2, 2, 4)
    expected = padded.transpose(2, 4, 6, 0, 1, 3, 5, 7).reshape(16, 1, 3, 2, 4)
    assert np.array_equal(run(SpaceToBatch(), [x], sizes), expected)


def test_lrn_with_dynamic_shapes() -> None:
    op, x, axes = LRN(alpha=0.3, beta=0.75, bias=1.5, size=3), noise(2, 4, 3, 3), np.array([1])
    expected = op.evaluate(x, axes)[0]
    assert np.allclose(run(op, [x], [axes], dynamic=True), expected, atol=1e-6)


def test_rdft_of_several_axes() -> None:
    x = noise(3, 4, 5)
    found = run(RDFT(), [x], [np.array([0, 1, 2]), np.array([4, 3, 6])])
    expected = np.fft.rfftn(x.astype(np.float64), (4, 3, 6), (0, 1, 2))
    assert np.allclose(found[..., 0] + 1j * found[..., 1], expected, atol=1e-5)


def test_matrix_nms_by_class() -> None:
    corners = np.arange(4, dtype=np.float32).reshape(1, 4, 1) * np.ones((1, 1, 2), np.float32)
    boxes, scores = np.concatenate([corners, corners + 1], 2), np.array([[[0, 9, 0, 7], [8, 0, 6, 0]]], np.float32)
    found = run(MatrixNms(Sorting.CLASS), [boxes, scores], outputs=3)
    assert found[:, :2].tolist() == [[0, 9], [0, 7], [1, 8], [1, 6]]


def test_reductions_over_no_axis() -> None:
    x = noise(2, 3)
    for kind in (ReduceMax, ReduceMean, ReduceProd, ReduceL1, ReduceL2):
        assert np.array_equal(run(kind(), [x], [np.zeros(0, np.int64)]), x)


def test_deconvolution_to_a_shape() -> None:
    x, w = np.array([[[1, 2, 3]]], np.float32), np.ones((1, 1, 1), np.float32)
    for pad in (AutoPad.VALID, AutoPad.EXPLICIT):
        found = run(ConvolutionBackpropData((2,), auto_pad=pad), [x], [w, np.array([3])])
        assert found.tolist() == [[[0, 2, 0]]]  # of 1 0 2 0 3


def test_rounded_once_to_eight_bits() -> None:
    x, scale = np.array([0.14065], np.float32), np.ones(1, np.float32)  # between 0.125 and 0.15625, above the middle
    assert run(FakeConvert(Float8.F8E5M2), [x], [scale]).tolist() == [0.15625]


def test_coefficient_of_pillow() -> None:
    x, target = noise(1, 1, 6, 7), [np.array([3, 4]), np.array([2, 3])]
    found, other = (run(Interpolate_11(Mode.BICUBIC_PILLOW, cube_coeff=c), [x], target) for c in (-0.75, -0.5))
    assert np.abs(found - other).max() > 1e-3


def test_lowest_of_empty_segments() -> None:
    ids = np.array([1, 1])
    for kind, lowest in ((np.float16, -65504), (np.int64, -(2**63))):
        assert run(SegmentMax(Fill.LOWEST), [np.array([3, 4], kind), ids]).tolist() == [lowest, 4]


def test_mean_of_short_integers() -> None:
    inputs = [np.array([-1, 0], np.int8), np.array([0]), np.array([-2], np.int8)]
    assert run(ScatterElementsUpdate(Combination.MEAN), inputs, [np.array(0)]).tolist() == [-2, 0]


def test_average_of_nothing() -> None:
    found = run(AvgPool((2,), kernel=(1,), rounding_type=Rounding.CEIL), [np.ones((1, 1, 4), np.float32)])
    assert found.tolist() == [[[1, 1, 0]]]


def test_place_of_the_lowest() -> None:
    found = run_all(MaxPool_8((2,), kernel=(2,)), [np.array([[[1, 1, 0, 0]]], np.uint8)])
    assert [y.tolist() for y in found] == [[[[1, 0]]], [[[0, 2]]]]


def test_new_axis_before_shrinking() -> None:
    x = np.arange(20, dtype=np.uint32).reshape(4, 5)
    op = StridedSlice((0, 0), (0, 0), (1, 0), (0, 1), (0, 0))
    found = run(op, [x], [np.array([0, 3]), np.array([2, 0]), np.array([-1, 1])])
    assert found.tolist() == [x[3].tolist()]


def test_fill_of_doubles() -> None:
    graph = Graph("difference")
    x, fill = (graph.add(Parameter(DType.F64, shape)).out_port(0) for shape in ((2,), ()))
    begin, end = (graph.add(Constant(DType.I64), data=np.array([n])).out_port(0) for n in (1, 2))
    graph.add(Result(), graph.add(Pad(), x, begin, end, fill).out_port(0))
    found = compile_model(graph, CompileOptions(level=None), threads=1)(np.array([1.0, 2.0]), np.array(7.5))[0]
    assert found.tolist() == [7.5, 1.0, 2.0, 7.5, 7.5]


def test_pads_of_all_dimensions() -> None:
    op = Interpolate_11(
        Mode.NEAREST,
        False,
        (0, 0, 1, 0),
        (),
        ShapeFrom.SCALES,
        coordinate_transformation_mode=Coordinates.ASYMMETRIC,
    )
    x = noise(2, 1, 6, 3)
    found = run(op, [x], [np.array([1, 2], np.float32), np.array([1, 2])])
    assert np.array_equal(found, np.repeat(np.pad(x, ((0, 0), (0, 0), (1, 0), (0, 0))), 2, 2))


def test_overlap_at_the_limit() -> None:
    boxes = np.array([[[0, 0, 1, 1], [5, 5, 6, 6]]], np.float32)
    scores = np.array([[[0.9, 0.8]]], np.float32)
    rows = run(NonMaxSuppression(), [boxes, scores], [np.array(2), np.array(0.0, np.float32)], outputs=3)
    assert rows.tolist() == [[0, 0, 0], [0, 0, 1]]
    assert len(run(MulticlassNms(), [boxes, scores], outputs=3)) == 2


def test_unsorted_slices() -> None:
    x = np.array([[1, 0, 1, 0], [0, 1, 0, 1]], np.int8)
    rows, first = run_all(Unique(sorted=False), [x], [np.array(1)], outputs=4)[:2]
    assert rows.tolist() == [[1, 0], [0, 1]] and first.tolist() == [0, 1]


def test_scatter_into_a_late_slice() -> None:
    x, y = noise(5, 4), noise(2, 2)
    bounds = [np.array([1, 0]), np.array([5, 4])]
    found = run(SliceScatter(), [x, y, *bounds], [np.array([2, 3]), np.array([0, 1])])
    x[1:5:2, 0:4:3] = y
    assert np.array_equal(found, x)


def test_loss_without_labels() -> None:
    logits = noise(1, 3, 2)
    given = [logits, np.array([2], np.int32), np.zeros((1, 3), np.int32), np.array([0], np.int32)]
    chances = np.exp(logits[0, :2, 1]) / np.exp(logits[0, :2]).sum(1)
    np.testing.assert_allclose(run(CTCLoss(), given), [-np.log(chances.prod())], rtol=1e-5)


def test_padding_before_strides() -> None:
    x, w = noise(2, 3, 4, 5), noise(4, 3, 1, 1)
    graph = Graph("difference")
    data = graph.add(Parameter(element_type=DType.F32, shape=x.shape), name="x").out_port(0)
    weights = graph.add(Constant(element_type=DType.F32), name="w", data=w).out_port(0)
    op = Convolution(strides=(2, 2), pads_begin=(0, 1), pads_end=(1, 0))
    graph.add(Result(), graph.add(op, graph.add(Abs(), data).out_port(0), weights).out_port(0))
    padded = np.pad(np.abs(x), ((0, 0), (0, 0), (0, 1), (1, 0)))[:, :, ::2, ::2]
    found = compile_model(graph, CompileOptions(level=None), threads=1)(x)[0]
    np.testing.assert_allclose(found, np.einsum("nchw,oc->nohw", padded, w[:, :, 0, 0]), rtol=1e-5, atol=1e-6)


def test_each_case_of_the_page_has_its_test() -> None:
    named = re.findall(r"\| `(\w+)` \|$", PAGE.read_text(), re.MULTILINE)
    assert named and all(hasattr(sys.modules[__name__], f"test_{name}") for name in named)
