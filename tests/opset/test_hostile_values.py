"""Values and sizes that nobody means: an error that says so or a defined result; no memory outside of the tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from aot.codegen.ir.loops import Var
from aot.compilation.driver import compile_model
from aot.ir.graph import Graph, OutPort
from aot.ir.op import Op
from aot.ir.types import Array, dtype_of
from aot.opset.control.generators import Range
from aot.opset.control.infrastructure import Constant, Parameter, Result
from aot.opset.detection.detectron import ExperimentalDetectronROIFeatureExtractor
from aot.opset.detection.roi_align import ROIAlign
from aot.opset.detection.roi_pooling import PSROIPooling, ROIPooling
from aot.opset.elementwise.activation import PRelu, Selu
from aot.opset.elementwise.binary import Add, Multiply
from aot.opset.elementwise.broadcasting import Broadcast, BroadcastMode
from aot.opset.elementwise.quantization import FakeQuantize
from aot.opset.elementwise.unary import Sqrt
from aot.opset.image.resize import Interpolate_1
from aot.opset.image.resize_weights import Mode
from aot.opset.movement.blocks import BatchToSpace, DepthToSpace, ReorgYolo, ShuffleChannels, SpaceToBatch, SpaceToDepth
from aot.opset.movement.columns import Col2Im
from aot.opset.movement.embedding import EmbeddingBagOffsets, EmbeddingBagPackedSum
from aot.opset.movement.gather import Gather, GatherTree
from aot.opset.movement.movement import Concat, ReverseSequence
from aot.opset.movement.padding import Pad, PadMode
from aot.opset.movement.scatter import SliceScatter
from aot.opset.movement.shape import Reshape, ShapeOf, Squeeze, Unsqueeze
from aot.opset.movement.slicing import StridedSlice
from aot.opset.movement.sparse import SparseFillEmptyRows
from aot.opset.products.convolution import GroupConvolution
from aot.opset.products.deconvolution import ConvolutionBackpropData
from aot.opset.products.matmul import MatMul
from aot.opset.recurrent.recurrent import GRUSequence
from aot.opset.reduction.reduction import ReduceLogicalOr
from aot.opset.reduction.scan import CumSum
from aot.opset.signal.spectrum import DFT
from aot.options import CompileOptions
from aot.runtime.abi import DType
from aot.runtime.errors import BudgetError, ShapeError, UnsupportedError, UsageError
from tests.properties.compiled import network, wrong
from tests.properties.drawing import Trial, listed

FAST = CompileOptions(level=None)
Shapes = Sequence[tuple[int, ...]]


def longs(*values: int) -> Array:
    return listed(DType.I64, values)


def filled(*shapes: tuple[int, ...]) -> list[Array]:
    return [np.arange(np.prod(s, dtype=int), dtype=np.float32).reshape(s) for s in shapes]


def trial(op: Op, *shapes: tuple[int, ...], fixed: Sequence[Array] = ()) -> Trial:
    """Floats of run-time shapes, then constants."""
    arrays = [*filled(*shapes), *fixed]
    return Trial(op, arrays, frozenset(range(len(shapes), len(arrays))), dynamic=True)


# what fits, and shapes of run time that do not
SIZES: list[tuple[Trial, Shapes]] = [
    (trial(FakeQuantize(3), (3, 2), (1, 2), (), (), ()), ((3, 2), (0, 2), (), (), ())),
    (trial(Broadcast(BroadcastMode.EXPLICIT), (2, 1), fixed=[longs(2, 4, 3), longs(0, 1)]), ((2, 0),)),
    (trial(Broadcast(), (3,), fixed=[longs(2, 3)]), ((2,),)),
    (trial(Pad(PadMode.REFLECT), (4,), fixed=[longs(2), longs(3)]), ((3,),)),
    (trial(Pad(PadMode.SYMMETRIC), (4,), fixed=[longs(2), longs(3)]), ((2,),)),
    (trial(Pad(PadMode.EDGE), (4,), fixed=[longs(2), longs(-1)]), ((0,),)),
    (trial(Squeeze(), (1, 3), fixed=[longs(0)]), ((0, 3),)),
    (trial(Reshape(), (2, 3), fixed=[longs(-1, 3)]), ((7, 1),)),
    (trial(SpaceToDepth(block_size=3), (1, 1, 3, 6)), ((1, 1, 1, 6),)),
    (trial(DepthToSpace(block_size=2), (1, 4, 3, 6)), ((1, 3, 3, 6),)),
    (trial(SpaceToBatch(), (1, 4), fixed=[longs(1, 2), longs(0, 1), longs(0, 1)]), ((1, 3),)),
    (trial(BatchToSpace(), (2, 4), fixed=[longs(1, 2), longs(0, 1), longs(0, 1)]), ((3, 4),)),
    (trial(ShuffleChannels(0, 3), (6, 2)), ((4, 2),)),
    (trial(ReorgYolo((2,)), (1, 4, 2, 2)), ((1, 4, 2, 3),)),
    (trial(Col2Im(), (4, 4), fixed=[longs(3, 3), longs(2, 2)]), ((4, 1),)),
    (trial(Interpolate_1(Mode.LINEAR, axes=(2,)), (1, 1, 3, 2), fixed=[longs(5)]), ((1, 1, 0, 2),)),
    (trial(PRelu(), (2, 3, 4), (3,)), ((2, 3, 4), (0,))),
    (trial(PRelu(), (2, 3, 4), (1,)), ((2, 3, 4), (2,))),
    (trial(Selu(), (3,), (1,), (1,)), ((3,), (3,), (1,))),
    (trial(GroupConvolution(), (1, 4, 3), (2, 1, 2, 1)), ((1, 9, 3), (2, 1, 2, 1))),
    (trial(ConvolutionBackpropData(), (1, 4, 3), (4, 1, 2)), ((1, 9, 3), (4, 1, 2))),
    (trial(SliceScatter(), (4, 3), (2, 3), fixed=[longs(0), longs(2), longs(1)]), ((4, 3), (3, 3))),
]


@pytest.mark.slow
def test_sizes_of_run_time_that_do_not_fit() -> None:
    """All in one network; each is refused by itself."""
    fitting = [given for given, _ in SIZES]
    graph, fed = network(fitting)
    model = compile_model(graph, FAST, threads=1)
    results = model(*fed)
    assert not wrong(fitting, [np.asarray(results[n]) for n in range(len(model.outputs))])
    first = 0
    for k, (given, others) in enumerate(SIZES):
        last = first + len(given.given)
        with pytest.raises(UsageError, match=rf"inputs: .* 'trial{k}': "):
            model(*fed[:first], *filled(*others), *fed[last:])
        first = last


def ints(*values: int) -> Array:
    return listed(DType.I32, values)


def floats(*values: float) -> Array:
    return np.array(values, np.float32)


FAR, LEAST = 2**63 - 1, -(2**63)
IMAGES = filled((2, 2, 4, 4))
BOX = floats(0, 0, 3, 3)
OUTSIDE = np.stack([[which, *BOX] for which in (-1, 2, 1e30)]).astype(np.float32)
TABLE = filled((3, 2))
# compiled code and the reference agree
VALUES: list[Trial] = [
    Trial(GatherTree(), [*filled((3, 1, 2)), np.full((3, 1, 2), np.nan, np.float32), floats(np.inf), floats(9)[0]]),
    Trial(EmbeddingBagOffsets(), [*TABLE, longs(1, -1, 7, FAR, LEAST), longs(0, 2, FAR), longs(5)[0]]),
    Trial(EmbeddingBagOffsets(), [*TABLE, longs(1), longs(LEAST, 1, 1), longs(2)[0]]),
    Trial(EmbeddingBagPackedSum(), [*TABLE, longs(-1, 2, 3, 0).reshape(2, 2)]),
    Trial(ReverseSequence(0, 1), [*filled((4, 3)), longs(-6, 2, FAR, 4)]),
    Trial(CumSum(exclusive=True), [np.zeros((0, 2), np.float32), np.array(0)], frozenset({1})),
    Trial(ShuffleChannels(0, 2), [np.zeros((4, 0), np.float32)]),
    Trial(Gather(), [*filled((3,)), longs(3, -4, FAR, LEAST), longs(0)], frozenset({2})),
    Trial(ROIAlign(1, 1), [*IMAGES, np.stack([BOX, BOX, BOX]), ints(-1, 2, 2**31 - 1)]),
    Trial(ROIAlign(1, 1), [*IMAGES, np.stack([BOX * 1e30, BOX * np.float32(np.nan)]), ints(0, 1)]),
    Trial(ROIPooling((1, 1), (), 1, 1, 1.0), [*IMAGES, OUTSIDE]),
    Trial(PSROIPooling(2, 1.0, 1), [*IMAGES, OUTSIDE]),
    Trial(StridedSlice((0,), (0,)), [*filled((4,)), longs(0), longs(4), longs(FAR)], frozenset({1, 2, 3})),
]


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
def test_values_that_point_outside(dynamic: bool) -> None:
    asked = [replace(given, dynamic=dynamic) for given in VALUES]
    graph, fed = network(asked)
    model = compile_model(graph, FAST, threads=1)
    found = model(*fed)
    failed = wrong(asked, [np.asarray(found[n]) for n in range(len(model.outputs))])
    assert not failed, "\n".join(failed)


def test_a_box_of_infinite_size_has_an_end() -> None:
    op = ExperimentalDetectronROIFeatureExtractor(1, 0, (4,))
    graph, _ = network([Trial(op, [np.zeros((1, 4), np.float32), *filled((1, 2, 4, 4))])])
    boxes = floats(0, 0, np.inf, 1e30).reshape(1, 4)
    assert compile_model(graph, FAST, threads=1)(boxes, *filled((1, 2, 4, 4)))[0].shape == (1, 2, 1, 1)


def all_constant(op: Op, *arrays: Array, outputs: int = 1) -> Graph:
    graph = Graph("constants")
    nodes = [graph.add(Constant(dtype_of(a)), name=f"c{k}", data=a) for k, a in enumerate(arrays)]
    made = graph.add(op, *(n.out_port(0) for n in nodes), name="op", outputs=outputs)
    for port in made.out_ports().values():
        graph.add(Result(), port)
    return graph


@pytest.mark.parametrize(
    ("op", "arrays", "error"),
    [
        (Range(DType.F32), (floats(0)[0], floats(np.nan)[0], floats(1)[0]), "Range: .* must be finite"),
        (Range(DType.I8), (floats(0)[0], floats(5)[0], floats(0.7)[0]), "Range: step must not be 0"),
        (Broadcast(BroadcastMode.EXPLICIT), (*filled((1, 1)), longs(2, 2), longs(0, LEAST)), "Broadcast: axes_mapping"),
        (Broadcast(BroadcastMode.EXPLICIT), (*filled((2, 2)), longs(2, 2), longs(0, 0)), "Broadcast: axes_mapping"),
        (Col2Im(), (*filled((6, 20)), longs(4, 4), longs(0, 1)), "Col2Im"),
        (Gather(), (floats(1)[0], longs(0), longs(0)), "Gather: data must have dimensions"),
        (ReverseSequence(0, 1), (*filled((1, 2)), longs(1)[0]), "ReverseSequence: lengths must have rank 1"),
        (Unsqueeze(), (*filled((2, 3)), longs(-1, 3)), "Unsqueeze: axes must be different"),
        (PRelu(), (floats(1)[0], floats(1, 2)), "PRelu: the slope must broadcast"),
    ],
)
def test_constants_that_break_a_rule(op: Op, arrays: tuple[Array, ...], error: str) -> None:
    with pytest.raises(ShapeError, match=error):
        compile_model(all_constant(op, *arrays), FAST)


def test_rows_that_no_memory_holds() -> None:
    rows = all_constant(
        SparseFillEmptyRows(),
        *filled((2,)),
        longs(FAR - 1, 2),
        longs(2, 0, 4, 0).reshape(2, 2),
        floats(1)[0],
        outputs=3,
    )
    with pytest.raises(BudgetError, match="SparseFillEmptyRows: a tensor can have at most"):
        compile_model(rows, FAST)


def test_transforms_that_are_too_long() -> None:
    with pytest.raises(UnsupportedError, match="DFT: signals can have at most"):
        compile_model(all_constant(DFT(), *filled((3, 2)), longs(0), longs(1 << 40)), FAST)


def test_codes_that_only_convert_reads() -> None:
    graph = Graph("codes")
    codes = graph.add(Constant(DType.NF4), name="c", data=np.zeros(4, np.uint8)).out_port(0)
    which = graph.add(Parameter(DType.I64, (2,)), name="x").out_port(0)
    axis = graph.add(Constant(DType.I64), name="a", data=np.array(0)).out_port(0)
    graph.add(Result(), graph.add(Gather(), codes, which, axis, name="op").out_port(0))
    with pytest.raises(UnsupportedError, match="elements of nf4 are constants for Convert"):
        compile_model(graph, FAST)


@pytest.mark.parametrize(
    ("op", "shapes"),
    [
        (GRUSequence(hidden_size=2), ((1, 3, 2), (1, 2), (1, 6, 2), (1, 6, 2), (1, 6))),
        (GRUSequence(hidden_size=2), ((1, 3, 2), (4, 1, 2), (1, 6, 2), (1, 6, 2), (1, 6))),
    ],
)
def test_states_that_do_not_fit(op: Op, shapes: Shapes) -> None:
    x, h, *weights = filled(*shapes)
    with pytest.raises(ShapeError, match="GRUSequence: "):
        compile_model(all_constant(op, x, h, longs(3), *weights, outputs=2), FAST)


@pytest.mark.parametrize(
    ("op", "arrays", "types"),
    [
        (PSROIPooling(2, 1.0, 1), (*IMAGES, np.zeros((1, 5))), "f32, f64"),
        (MatMul(), (*filled((2, 3)), np.zeros((3, 2))), "f32 and f64"),
    ],
)
def test_element_types_that_differ(op: Op, arrays: tuple[Array, ...], types: str) -> None:
    with pytest.raises(ShapeError, match=f"{op.type}: element types must be equal, got {types}"):
        compile_model(all_constant(op, *arrays), FAST)


def repeated(graph: Graph, port: OutPort, op: Op, times: int, reads: int = 1) -> OutPort:
    """`op` on its own result again and again, as each of its inputs."""
    for k in range(times):
        port = graph.add(op, *[port] * reads, name=f"op{k}").out_port(0)
    return port


@pytest.mark.parametrize(("op", "times", "reads"), [(Sqrt(), 300, 1), (Add(), 40, 2)], ids=["deep", "shared"])
def test_long_chains_are_merged_as_far_as_they_can_be_walked(op: Op, times: int, reads: int) -> None:
    graph = Graph("chain")
    x = graph.add(Parameter(DType.F32, (4,)), name="x").out_port(0)
    graph.add(Result(), repeated(graph, x, op, times, reads))
    data = np.array([1, 2, 3, 4], np.float32)
    expected = data
    for _ in range(times):
        (expected,) = op.evaluate(*[expected] * reads)
    assert np.allclose(compile_model(graph, FAST, threads=1)(data)[0], expected, rtol=1e-5)


def test_sizes_that_double_again_and_again() -> None:
    graph = Graph("doubled")
    x = graph.add(Parameter(DType.F32, (4,)), name="x").out_port(0)
    graph.add(Result(), repeated(graph, x, Concat(0), 80, 2))
    with pytest.raises(BudgetError, match="Concat: a tensor can have at most"):
        compile_model(graph, FAST)


def test_sizes_that_are_squared_again_and_again() -> None:
    graph = Graph("squared")
    x = graph.add(Parameter(DType.F32, (Var("n"),)), name="x").out_port(0)
    size = repeated(graph, graph.add(ShapeOf(), x, name="size").out_port(0), Multiply(), 40, 2)
    graph.add(Result(), graph.add(Broadcast(BroadcastMode.BIDIRECTIONAL), x, size, name="wide").out_port(0))
    with pytest.raises(BudgetError, match="Multiply: dynamic sizes are combined too often"):
        compile_model(graph, FAST)


def test_products_without_rows_have_a_schedule() -> None:
    graph = Graph("empty")
    x = graph.add(Parameter(DType.BOOL, (2, 1, 0, 0, 2)), name="x").out_port(0)
    axes = graph.add(Parameter(DType.I32, (3,)), name="axes").out_port(0)
    graph.add(Result(), graph.add(ReduceLogicalOr(True), x, axes, name="any").out_port(0))
    assert len(compile_model(graph, FAST, threads=1).outputs) == 1


def test_strides_of_zero() -> None:
    with pytest.raises(ShapeError, match="strides and dilations must be positive"):
        compile_model(all_constant(ConvolutionBackpropData((0,)), *filled((1, 1, 3), (1, 1, 2))), FAST)
