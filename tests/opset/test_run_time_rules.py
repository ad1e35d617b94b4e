"""Sizes of several inputs that do not fit each other: refused when compiling, or at run time where only that knows."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np
import pytest

from aot.codegen.ir.loops import Var
from aot.compilation.driver import compile_model
from aot.ir.graph import Graph, OutPort
from aot.ir.op import Op
from aot.ir.types import Array, dtype_of
from aot.opset.control.infrastructure import Constant, Parameter, Result
from aot.opset.detection.deformable_pooling import DeformablePSROIPooling
from aot.opset.detection.prior_boxes import ExperimentalDetectronPriorGridGenerator, PriorBoxClustered
from aot.opset.detection.proposals.proposal import Proposal
from aot.opset.detection.roi_align import ROIAlign
from aot.opset.detection.roi_pooling import PSROIPooling
from aot.opset.elementwise.binary import Add, AutoBroadcast
from aot.opset.elementwise.comparison import Select
from aot.opset.image.colour import NV12toRGB, RGBtoNV12
from aot.opset.image.grid import GridSample
from aot.opset.movement.embedding import EmbeddingBagPackedSum
from aot.opset.movement.gather import GatherElements, GatherTree
from aot.opset.movement.movement import Concat, ReverseSequence
from aot.opset.movement.scatter import ScatterNDUpdate
from aot.opset.movement.slicing import Slice
from aot.opset.products.convolution import Convolution
from aot.opset.products.deformable import DeformableConvolution
from aot.opset.products.linear_algebra import Inverse
from aot.opset.products.pooling import AvgPool, MaxPool
from aot.opset.recurrent.ctc import CTCGreedyDecoder, CTCLoss
from aot.opset.reduction.bucketing import SearchSorted
from aot.opset.reduction.segments import GroupedMatMul
from aot.options import CompileOptions
from aot.runtime.abi import DType
from aot.runtime.errors import ModelError, UsageError
from tests.properties.compiled import network
from tests.properties.drawing import Trial, listed

FAST = CompileOptions(level=None)
Shapes = Sequence[tuple[int, ...]]
I32, F32 = np.dtype(np.int32), np.dtype(np.float32)
NONE = AutoBroadcast.NONE
CONV = Convolution((1, 1), (0, 0), (0, 0), (1, 1))
DEFORMABLE = DeformableConvolution((1, 1), (0, 0), (0, 0), (1, 1))
GRID = ExperimentalDetectronPriorGridGenerator()
PROPOSAL = Proposal(16, 9, 3, 0.5, 16, 1, (0.5, 1.0), (1.0,))

# operation, types, shapes that fit, shapes that do not
CASES: list[tuple[Op, Sequence[np.dtype[np.generic]], Shapes, Shapes]] = [
    (Add(NONE), (F32, F32), ((3,), (3,)), ((3,), (7,))),
    (Add(AutoBroadcast.PDPD, 0), (F32, F32), ((3, 2), (3,)), ((3, 2), (5,))),
    (Select(NONE), (np.dtype(np.bool_), F32, F32), ((2,), (2,), (2,)), ((9,), (2,), (2,))),
    (Concat(0), (F32, F32), ((2, 3), (1, 3)), ((2, 3), (1, 2))),
    (CONV, (F32, F32), ((1, 3, 4, 4), (2, 3, 1, 1)), ((1, 3, 4, 4), (2, 5, 1, 1))),
    (CONV, (F32, F32), ((1, 3, 4, 4), (2, 3, 4, 1)), ((1, 3, 4, 4), (2, 3, 5, 1))),
    (AvgPool((2,), kernel=(3,)), (F32,), ((1, 2, 3),), ((1, 2, 2),)),
    (MaxPool((1,), (1,), (0,), (4,)), (F32,), ((1, 2, 3),), ((1, 2, 1),)),
    (GRID, (F32,) * 3, ((2, 4), (1, 2, 4, 2), (1, 3, 8, 8)), ((2, 5), (1, 2, 4, 2), (1, 3, 8, 8))),
    (GRID, (F32,) * 3, ((2, 4), (1, 2, 4, 2), (1, 3, 8, 8)), ((2, 3), (1, 2, 4, 2), (1, 3, 8, 8))),
    (DEFORMABLE, (F32,) * 3, ((1, 2, 4, 4), (1, 2, 4, 4), (2, 2, 1, 1)), ((1, 2, 4, 4), (1, 1, 4, 4), (2, 2, 1, 1))),
    (SearchSorted(), (F32, F32), ((2, 3), (2, 4)), ((2, 3), (5, 4))),
    (CTCGreedyDecoder(), (F32, F32), ((4, 2, 3), (4, 2)), ((4, 2, 3), (3, 2))),
    (CTCLoss(), (F32, *(I32,) * 3), ((2, 4, 3), (2,), (2, 4), (2,)), ((2, 4, 3), (2,), (1, 4), (2,))),
    (EmbeddingBagPackedSum(), (F32, I32, F32), ((5, 2), (2, 3), (2, 3)), ((5, 2), (2, 3), (2, 1))),
    (GatherElements(0), (F32, I32), ((3, 2), (1, 2)), ((3, 2), (1, 9))),
    (GatherTree(), (F32,) * 4, ((3, 2, 2), (3, 2, 2), (2,), ()), ((3, 2, 2), (3, 2, 2), (1,), ())),
    (GridSample(), (F32, F32), ((1, 2, 3, 3), (1, 2, 2, 2)), ((1, 2, 3, 3), (4, 2, 2, 2))),
    (Inverse(), (F32,), ((1, 3, 3),), ((1, 2, 3),)),
    (ReverseSequence(0, 1), (F32, I32), ((2, 3), (2,)), ((2, 3), (1,))),
    (ROIAlign(2, 2), (F32, F32, I32), ((1, 2, 4, 4), (2, 4), (2,)), ((1, 2, 4, 4), (2, 4), (0,))),
    (PSROIPooling(2, 1.0, 2), (F32, F32), ((1, 8, 4, 4), (2, 5)), ((1, 7, 4, 4), (2, 5))),
    (DeformablePSROIPooling(3), (F32,) * 3, ((1, 3, 4, 4), (2, 5), (2, 2, 1, 1)), ((1, 3, 4, 4), (2, 5), (2, 4, 1, 1))),
    (PROPOSAL, (F32, F32, F32), ((1, 4, 2, 2), (1, 8, 2, 2), (3,)), ((1, 4, 2, 2), (1, 8, 1, 2), (3,))),
    (ScatterNDUpdate(), (F32, I32, F32), ((3, 2), (2, 1), (2, 2)), ((3, 2), (2, 1), (1, 2))),
    (GroupedMatMul(), (F32, F32), ((2, 3, 4), (2, 5, 4)), ((2, 3, 4), (1, 5, 4))),
    (NV12toRGB(), (F32,), ((1, 6, 4, 1),), ((1, 6, 4, 2),)),
    (RGBtoNV12(False), (F32,), ((1, 4, 4, 3),), ((1, 4, 4, 1),)),
]

each_case = pytest.mark.parametrize("case", CASES, ids=lambda c: type(c[0]).__name__ + str(len(c[1])))


def zeros(types: Sequence[np.dtype[np.generic]], shapes: Shapes) -> list[Array]:
    return [np.zeros(shape, dtype) for dtype, shape in zip(types, shapes, strict=True)]


def add(graph: Graph, op: Op, arrays: Sequence[Array], dynamic: bool, end: str = "") -> None:
    """Add the operation with inputs of its own; `end` is that of all names."""
    ports = list[OutPort]()
    for k, array in enumerate(arrays):
        shape = tuple(Var(f"n{k}_{d}{end}") for d in range(array.ndim)) if dynamic else array.shape
        ports.append(graph.add(Parameter(dtype_of(array), shape), name=f"x{k}{end}").out_port(0))
    count = 1 if not isinstance(op, Proposal | RGBtoNV12) else 2
    graph.add(Result(), graph.add(op, *ports, name=f"op{end}", outputs=count).out_port(0))


def graph_of(op: Op, arrays: Sequence[Array], dynamic: bool) -> Graph:
    graph = Graph("rules")
    add(graph, op, arrays, dynamic)
    return graph


@each_case
def test_sizes_that_do_not_fit(case: tuple[Op, Sequence[np.dtype[np.generic]], Shapes, Shapes]) -> None:
    op, types, _, others = case
    with pytest.raises(ModelError, match=op.type):
        compile_model(graph_of(op, zeros(types, others), False), FAST)


def test_sizes_of_run_time_that_do_not_fit() -> None:
    """All in one network; each is refused by itself, and what was refused leaves no trace."""
    graph, good = Graph("rules"), [zeros(types, fitting) for _, types, fitting, _ in CASES]
    for n, ((op, *_), arrays) in enumerate(zip(CASES, good, strict=True)):
        add(graph, op, arrays, True, f"_{n}")
    model = compile_model(graph, FAST, threads=1)
    model(*chain(*good))
    for n, (op, types, _, others) in enumerate(CASES):
        fed = [*good[:n], zeros(types, others), *good[n + 1 :]]
        with pytest.raises(UsageError, match=f"inputs: {op.type} 'op_{n}': "):
            model(*chain(*fed))
    model(*chain(*good))


@pytest.mark.parametrize("count", [1, 3])
def test_the_image_of_prior_boxes_has_two_sizes(count: int) -> None:
    graph = Graph("priors")
    grid = graph.add(Constant(DType.I64), name="grid", data=np.array([2, 3]))
    image = graph.add(Parameter(DType.I64, (Var("n"),)), name="image")
    boxes = graph.add(PriorBoxClustered(width=(4.0,), height=(2.0,)), grid.out_port(0), image.out_port(0), name="op")
    graph.add(Result(), boxes.out_port(0))
    model = compile_model(graph, FAST, threads=1)
    assert model(np.array([16, 16]))[0].shape == (2, 2 * 3 * 4)
    with pytest.raises(UsageError, match=r"PriorBoxClustered 'op': .*, got .*\bn\b"):
        model(np.full(count, 16))


@pytest.mark.parametrize(("start", "stop"), [(4, -(1 << 31)), (3, -6), (-2, 0), (9, 1)])
def test_a_slice_of_nothing_is_empty(start: int, stop: int) -> None:
    bounds = [listed(DType.I64, [n]) for n in (start, stop, 1)]
    trial = Trial(Slice(), [np.zeros((5, 2), np.float32), *bounds], frozenset({1, 2, 3}), dynamic=True)
    graph, fed = network([trial])
    assert compile_model(graph, FAST, threads=1)(*fed)[0].shape == trial.expected()[0].shape == (0, 2)


def test_loss_reads_nothing_outside_of_its_inputs() -> None:
    shapes = ((1, 4, 3), (1,), (1, 2), (1,))
    model = compile_model(graph_of(CTCLoss(), zeros((F32, *(I32,) * 3), shapes), True), FAST, threads=1)
    logits = np.zeros((1, 4, 3), np.float32)
    expected = model(logits, *(np.array(a, np.int32) for a in ([4], [[1, 2]], [2])))[0]
    found = model(logits, *(np.array(a, np.int32) for a in ([1 << 30], [[1, 1 << 30]], [1 << 30])))[0]
    assert np.array_equal(found, expected)
