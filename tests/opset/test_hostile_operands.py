"""Every operand that tells sizes or places, as an input of the network, with values that nobody means.

Compiled code gives what the reference gives, or an error that names the layer; it touches nothing outside its tensors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from aot.codegen.ir.loops import Var
from aot.compilation.driver import compile_model
from aot.ir.graph import Graph, Origin, OutPort
from aot.ir.op import Op
from aot.ir.types import Array, dtype_of
from aot.opset.control.generators import Eye, Range, Range_1
from aot.opset.control.infrastructure import Constant, Parameter, Result
from aot.opset.control.random_numbers import Multinomial, RandomUniform
from aot.opset.detection.deformable_pooling import DeformablePSROIPooling
from aot.opset.detection.prior_boxes import PriorBox, PriorBoxClustered
from aot.opset.detection.roi_align import ROIAlign, ROIAlign_3, ROIAlignRotated
from aot.opset.detection.roi_pooling import PSROIPooling, ROIPooling
from aot.opset.detection.suppression.suppression import NonMaxSuppression, NonMaxSuppression_1
from aot.opset.elementwise.broadcasting import Broadcast, BroadcastMode, Tile
from aot.opset.image.grid import GridSample
from aot.opset.image.resize import Interpolate_1, Interpolate_4, Interpolate_11, ShapeFrom
from aot.opset.image.resize_weights import Mode
from aot.opset.movement.blocks import BatchToSpace, SpaceToBatch
from aot.opset.movement.columns import Col2Im
from aot.opset.movement.embedding import (
    EmbeddingBagOffsets,
    EmbeddingBagOffsetsSum,
    EmbeddingBagPacked,
    EmbeddingBagPackedSum,
    EmbeddingSegmentsSum,
)
from aot.opset.movement.gather import (
    Gather,
    Gather_1,
    Gather_7,
    GatherElements,
    GatherND,
    GatherND_5,
    GatherTree,
    NegativeIndices,
    OneHot,
    OneHot_1,
)
from aot.opset.movement.movement import ReverseSequence, Roll, Split, Transpose, VariadicSplit
from aot.opset.movement.padding import Pad, PadMode
from aot.opset.movement.scatter import ScatterElementsUpdate, ScatterNDUpdate, ScatterUpdate, SliceScatter
from aot.opset.movement.shape import Reshape
from aot.opset.movement.slicing import Slice, StridedSlice
from aot.opset.movement.sparse import SparseFillEmptyRows
from aot.opset.products.adaptive_pooling import AdaptiveAvgPool, AdaptiveMaxPool
from aot.opset.products.deconvolution import ConvolutionBackpropData
from aot.opset.recurrent.ctc import CTCGreedyDecoder, CTCGreedyDecoderSeqLen, CTCLoss
from aot.opset.recurrent.recurrent import GRUSequence, LSTMSequence, RNNSequence
from aot.opset.reduction.bucketing import Bucketize, SearchSorted
from aot.opset.reduction.nonzero import Unique
from aot.opset.reduction.reduction import ReduceLogicalOr, ReduceMax, ReduceMean, ReduceSum
from aot.opset.reduction.scan import CumSum
from aot.opset.reduction.segments import SegmentMax
from aot.opset.reduction.sorting import TopK
from aot.opset.signal.short_time import ISTFT, STFT
from aot.opset.signal.spectrum import DFT, IDFT, IRDFT, RDFT
from aot.options import CompileOptions
from aot.runtime.abi import DType
from aot.runtime.errors import ShapeError, UnsupportedError
from aot.runtime.model import CompiledModel
from tests.hostile import Call, are_sizes_open, faults, hostile
from tests.properties.drawing import listed

FAST = CompileOptions(level=None)


def longs(*values: int) -> Array:
    return listed(DType.I64, values)


def ints(*values: int) -> Array:
    return listed(DType.I32, values)


def long(value: int) -> Array:
    return np.array(value, np.int64)


def floats(*shape: int) -> Array:
    return (np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape) + 1) / 4


def real(value: float) -> Array:
    return np.array(value, np.float32)


def reals(*values: float) -> Array:
    return np.array(values, np.float32)


@dataclass(frozen=True)
class Row:
    """An operation with inputs that fit; `asked`: the operands that take hostile values, all integers if empty.

    Operands in `fixed` are constants. `defined`: what values outside of the data mean is said, though the reference
    has no result; `alone`: it has one, but another.
    """

    op: Op
    arrays: Sequence[Array]
    asked: tuple[int, ...] = ()
    fixed: tuple[int, ...] = ()
    defined: bool = False
    alone: bool = False

    def __str__(self) -> str:
        return type(self.op).__name__

    @property
    def places(self) -> tuple[int, ...]:
        integers = (k for k, a in enumerate(self.arrays) if a.dtype.kind in "iu" and k not in self.fixed)
        return self.asked or tuple(integers)


X = floats(3, 4)
BOXES = np.array([[0, 0, 3, 3], [1, 1, 2, 3]], np.float32)
TABLE = floats(5, 2)
SCALES = ShapeFrom.SCALES


def cell(gates: int, *states: Array) -> list[Array]:
    weights = [floats(1, gates * 2, 2) / 9, floats(1, gates * 2, 2) / 9, floats(1, gates * 2)]
    return [floats(2, 3, 2), *states, longs(3, 2), *weights]


STATE = floats(2, 1, 2)
ROIS = np.array([[0, 0, 0, 3, 3], [1, 1, 1, 2, 3]], np.float32)
ROWS = [
    Row(Reshape(), [X, longs(2, 6)]),
    Row(Reshape(special_zero=True), [X, longs(2, 6)]),
    Row(Broadcast(), [floats(1, 4), longs(3, 4)]),
    Row(Broadcast(), [X, longs(2, 3, 4)]),
    Row(Broadcast(BroadcastMode.BIDIRECTIONAL), [floats(5), longs(1)]),
    Row(Broadcast(BroadcastMode.BIDIRECTIONAL), [floats(1, 4), longs(3, 1)]),
    Row(Broadcast(BroadcastMode.EXPLICIT), [floats(3), longs(2, 3), longs(1)], (1,), (2,)),
    Row(Broadcast(BroadcastMode.PDPD, 0), [floats(3), longs(3, 2)]),
    Row(Tile(), [X, longs(2, 2)]),
    Row(Tile(), [X, longs(2, 1, 2)]),
    Row(VariadicSplit(), [X, long(1), longs(1, 3)], (2,), (1,)),
    Row(VariadicSplit(), [X, long(1), longs(1, -1, 2)], (2,), (1,)),
    Row(Slice(), [X, longs(0), longs(3), longs(1), longs(1)]),
    Row(Slice(), [X, longs(0), longs(3), longs(1)], (1,), (2, 3)),
    Row(Slice(), [X, longs(3), longs(-9), longs(-1)], (1, 2), (3,)),
    Row(Slice(), [X, longs(0), longs(3), longs(2)], (3,), (1, 2)),
    Row(StridedSlice((0, 0), (0, 0)), [X, longs(0, 0), longs(3, 4), longs(1, 1)]),
    Row(
        StridedSlice((0, 0), (0, 0), shrink_axis_mask=(1, 0)),
        [X, longs(1, 0), longs(2, 4), longs(1, 1)],
        (1, 2),
        (3,),
    ),
    Row(SliceScatter(), [X, floats(3, 2), longs(1), longs(3), longs(1), longs(1)], (2, 3), (4, 5)),
    Row(Pad(), [X, longs(1, 0), longs(0, 2), real(0)], (1, 2)),
    *(Row(Pad(mode), [X, longs(1, 0), longs(0, 2)]) for mode in (PadMode.EDGE, PadMode.REFLECT, PadMode.SYMMETRIC)),
    Row(Transpose(), [X, longs(1, 0)]),
    Row(Roll(), [X, longs(1), longs(1)], (1,), (2,)),
    Row(ReverseSequence(0, 1), [X, ints(1, 2, 3)], defined=True),
    Row(ReverseSequence(0, 1), [X, np.array([1, 2, 3], np.float32)], (1,), defined=True),
    *(Row(kind(), [X, longs(0, 2, 1), long(1)], (1,), (2,)) for kind in (Gather, Gather_1, Gather_7)),
    Row(GatherElements(1), [X, np.array([[0, 1], [2, 3], [1, 1]])]),
    Row(GatherND(), [X, np.array([[0, 1], [2, 3]])]),
    Row(GatherND_5(1), [X, np.array([[0], [2], [1]])]),
    Row(
        GatherTree(),
        [ints(*range(12)).reshape(3, 2, 2), ints(*[0] * 12).reshape(3, 2, 2), ints(3, 2), ints(5)[0]],
        defined=True,
    ),
    Row(OneHot(1), [longs(0, 2), long(3), real(1), real(0)]),
    Row(OneHot(1, NegativeIndices.NORMALIZE), [longs(0, 2), long(3), real(1), real(0)]),
    Row(OneHot_1(1), [longs(0, 2), long(3), real(1), real(0)]),
    Row(ScatterUpdate(), [X, longs(0, 2), floats(3, 2), long(1)], (1,), (3,)),
    Row(ScatterElementsUpdate(), [X, np.array([[0, 1], [2, 3], [1, 1]]), floats(3, 2), long(1)], (1,), (3,)),
    Row(ScatterNDUpdate(), [X, np.array([[0, 1], [2, 3]]), floats(2)]),
    Row(TopK(axis=1), [X, long(2)]),
    Row(Range(DType.I64), [long(0), long(5), long(1)]),
    Row(Range(DType.F32), [real(0), real(5), real(1)], (0, 1, 2)),
    Row(Range(DType.I32), [real(0), real(5), real(1)], (0, 1, 2)),
    Row(Range_1(), [real(0), real(5), real(1)], (0, 1, 2)),
    Row(Range_1(), [ints(0)[0], ints(5)[0], ints(1)[0]], (0, 1, 2)),
    Row(Eye(DType.F32), [long(3), long(4), long(1), longs(2)]),
    *(Row(kind(), [X, longs(1)]) for kind in (ReduceSum, ReduceMax, ReduceMean)),
    Row(ReduceSum(True), [floats(2, 3, 2), longs(1, 2)]),
    Row(ReduceLogicalOr(), [X > 1, longs(1)]),
    Row(CumSum(), [X, long(1)]),
    Row(SpaceToBatch(), [floats(1, 4), longs(1, 2), longs(0, 1), longs(0, 1)], (2, 3), (1,)),
    Row(BatchToSpace(), [floats(2, 4), longs(1, 2), longs(0, 1), longs(0, 1)]),
    Row(BatchToSpace(), [floats(2, 4), longs(1, 2), longs(0, 1), longs(0, 1)], (2, 3), (1,)),
    Row(Col2Im(), [floats(4, 4), longs(3, 3), longs(2, 2)], (1,), (2,)),
    Row(EmbeddingBagOffsets(), [TABLE, longs(0, 1, 4, 2), longs(0, 2), long(1)]),
    Row(EmbeddingBagOffsetsSum(), [TABLE, longs(0, 1, 4, 2), longs(0, 2), long(1)]),
    Row(EmbeddingBagPacked(), [TABLE, longs(0, 1, 4, 2).reshape(2, 2)]),
    Row(EmbeddingBagPackedSum(), [TABLE, longs(0, 1, 4, 2).reshape(2, 2)]),
    Row(EmbeddingSegmentsSum(), [TABLE, longs(0, 1, 4, 2), longs(0, 0, 1, 2), long(4), long(1)], alone=True),
    Row(SegmentMax(), [floats(4, 2), longs(0, 0, 1, 2)], alone=True),
    Row(SegmentMax(), [floats(4, 2), longs(0, 0, 1, 2), long(4)], alone=True),
    Row(ROIAlign(2, 2), [floats(2, 2, 4, 4), BOXES, ints(0, 1)], (1, 2)),
    Row(ROIAlign_3(2, 2, 0), [floats(2, 2, 4, 4), BOXES, ints(0, 1)], (1, 2)),
    Row(ROIAlignRotated(2, 2), [floats(2, 2, 4, 4), floats(2, 5), ints(0, 1)], (1, 2)),
    Row(ROIPooling((1, 1), (), 1, 1, 1.0), [floats(2, 2, 4, 4), ROIS], (1,), alone=True),
    Row(PSROIPooling(2, 1.0, 1), [floats(2, 2, 4, 4), ROIS], (1,), defined=True),
    Row(DeformablePSROIPooling(2), [floats(2, 2, 4, 4), ROIS], (1,), defined=True),
    Row(CTCGreedyDecoder(), [floats(4, 2, 3), np.ones((4, 2), np.float32)], (1,)),
    Row(CTCGreedyDecoderSeqLen(), [floats(2, 4, 3), ints(4, 3), ints(2)]),
    Row(
        CTCLoss(),
        [floats(2, 4, 3), ints(4, 3), ints(0, 1, 1, 0, 0, 1, 0, 0).reshape(2, 4), ints(2, 1), ints(2)[0]],
        alone=True,
    ),
    Row(GRUSequence(hidden_size=2), cell(3, STATE)),
    Row(LSTMSequence(hidden_size=2), cell(4, STATE, STATE)),
    Row(RNNSequence(hidden_size=2), cell(1, STATE)),
    Row(Bucketize(), [X, floats(3)], (1,), alone=True),
    Row(SearchSorted(), [floats(2, 3), floats(2, 4)], (0, 1), alone=True),
    Row(NonMaxSuppression(), [BOXES[None], floats(1, 2, 2), long(1), real(0.5), real(0)], (2, 3, 4)),
    Row(RandomUniform(DType.F32, 1, 1), [longs(2, 3), real(0), real(1)], (0,)),
    Row(Multinomial(DType.I64), [floats(2, 3), long(4)], defined=True),
    Row(AdaptiveAvgPool(), [floats(1, 1, 4, 6), longs(2, 3)]),
    Row(AdaptiveMaxPool(), [floats(1, 1, 4, 6), longs(2, 3)]),
    Row(SparseFillEmptyRows(), [floats(2), longs(4, 5), np.array([[0, 1], [2, 3]]), real(1)]),
    Row(GridSample(), [floats(1, 1, 3, 3), floats(1, 2, 2, 2) - 1], (1,), alone=True),
    Row(PriorBox(min_size=(2.0,)), [longs(2, 3), longs(4, 6)]),
    Row(PriorBoxClustered(width=(2.0,), height=(3.0,)), [longs(2, 3), longs(4, 6)]),
    Row(ConvolutionBackpropData(), [floats(1, 2, 3, 3), floats(2, 1, 2, 2), longs(4, 4)]),
    *(Row(Interpolate_1(mode, axes=(1,)), [X, longs(6)]) for mode in (Mode.NEAREST, Mode.LINEAR)),
    Row(Interpolate_11(Mode.NEAREST), [X, longs(6), longs(1)], (1,), (2,)),
    Row(Interpolate_11(Mode.CUBIC), [X, longs(6), longs(1)], (1,), (2,)),
    Row(Interpolate_11(Mode.LINEAR, antialias=True), [X, longs(3), longs(1)], (1,), (2,)),
    Row(Interpolate_11(Mode.BICUBIC_PILLOW), [X, longs(3), longs(1)], (1,), (2,)),
    Row(Interpolate_11(Mode.LINEAR, shape_calculation_mode=SCALES), [X, reals(2, 1.5)], (1,)),
    Row(Interpolate_4(Mode.NEAREST), [X, longs(6), reals(2), longs(1)], (1,), (3,)),
    Row(Interpolate_4(Mode.NEAREST, shape_calculation_mode=SCALES), [X, longs(6), reals(2), longs(1)], (2,), (3,)),
]
# these have to be known when compiling
REFUSED = [
    Row(Broadcast(BroadcastMode.EXPLICIT), [floats(3), longs(2, 3), longs(1)], (2,)),
    Row(Split(num_splits=2), [X, long(1)]),
    Row(VariadicSplit(), [X, long(1), longs(1, 3)], (1,), (2,)),
    Row(SliceScatter(), [X, floats(3, 2), longs(1), longs(3), longs(1), longs(1)], (4, 5)),
    Row(Roll(), [X, longs(1), longs(1)], (2,)),
    Row(Gather(), [X, longs(0, 2, 1), long(1)], (2,)),
    Row(ScatterUpdate(), [X, longs(0, 2), floats(3, 2), long(1)], (3,)),
    Row(DFT(), [floats(3, 4, 2), longs(1)]),
    Row(DFT(), [floats(3, 4, 2), longs(1), longs(4)], (2,), (1,)),
    Row(IDFT(), [floats(3, 4, 2), longs(1), longs(4)], (2,), (1,)),
    Row(RDFT(), [floats(3, 4), longs(1), longs(4)], (2,), (1,)),
    Row(IRDFT(), [floats(3, 3, 2), longs(1), longs(4)], (2,), (1,)),
    Row(STFT(), [floats(1, 16), floats(4), long(4), long(2)], (2, 3)),
    Row(ISTFT(), [floats(1, 3, 5, 2), floats(4), long(4), long(2), long(12)], (2, 3, 4)),
    Row(ISTFT(), [floats(1, 3, 5, 2), floats(4), long(4), long(2), long(12)], (4,), (2, 3)),
    Row(SpaceToBatch(), [floats(1, 4), longs(1, 2), longs(0, 1), longs(0, 1)]),
    Row(Col2Im(), [floats(4, 4), longs(3, 3), longs(2, 2)]),
    Row(NonMaxSuppression_1(), [BOXES[None], floats(1, 2, 2), long(1), real(0.5), real(0)], (2, 3, 4)),
    Row(Unique(), [X, long(1)]),
    Row(Interpolate_11(Mode.LINEAR), [X, longs(6), longs(1)], (2,)),
]


def compiled(row: Row, dynamic: bool) -> CompiledModel:
    graph, ports = Graph("hostile"), list[OutPort]()
    for k, array in enumerate(row.arrays):
        dtype, dims = dtype_of(array), tuple(Var(f"n{k}_{d}") for d in range(array.ndim))
        if k in row.fixed:
            ports.append(graph.add(Constant(dtype), name=f"c{k}", data=array).out_port(0))
        else:
            shape = dims if dynamic and k not in row.places else array.shape
            ports.append(graph.add(Parameter(dtype, shape), name=f"x{k}").out_port(0))
    count = len(row.op.evaluate(*row.arrays))
    made = graph.add(row.op, *ports, name="layer", origin=Origin(("layer",)), outputs=count)
    for port in made.out_ports().values():
        graph.add(Result(), port)
    return compile_model(graph, FAST, threads=1)


def caller(model: CompiledModel) -> Call:
    """Return a function from inputs to results."""

    def call(feed: Sequence[Array]) -> list[Array]:
        results = model(*feed)
        return [np.asarray(results[n]) for n in range(len(model.outputs))]

    return call


CASES = [(row, are_sizes_open([type(r.op) for r in ROWS], n)) for n, row in enumerate(ROWS)]
NAMES = [f"{i}-{row}-{'open' if is_open else 'known'}" for i, (row, is_open) in enumerate(CASES)]


@pytest.mark.parametrize(("row", "is_open"), CASES, ids=NAMES)
def test_wrong_operands_are_errors_and_read_nothing(row: Row, is_open: bool) -> None:
    call = caller(compiled(row, is_open))
    fed = [k for k in range(len(row.arrays)) if k not in row.fixed]

    def oracle(feed: Sequence[Array]) -> tuple[Array, ...]:
        if row.alone and not all(a.tobytes() == row.arrays[k].tobytes() for k, a in zip(fed, feed, strict=True)):
            raise ShapeError("no result to compare with")
        arrays = list(row.arrays)
        for k, array in zip(fed, feed, strict=True):
            arrays[k] = array
        return row.op.evaluate(*arrays)

    good = [row.arrays[k] for k in fed]
    feeds = [[bad if j == k else row.arrays[j] for j in fed] for k in row.places for bad in hostile(row.arrays[k])]
    found = faults(call, oracle, [good, *feeds, good], "'layer'", row.defined or row.alone)
    assert not found, "\n".join(found[:12])


@pytest.mark.parametrize("row", REFUSED, ids=[f"{i}-{row}" for i, row in enumerate(REFUSED)])
def test_operand_that_must_be_known(row: Row) -> None:
    with pytest.raises(UnsupportedError, match=f"{row.op.type}: .* must be known at compile time"):
        compiled(row, False)
