"""References where the specification leaves results open: they are those of the kernels, for values of any kind."""

from __future__ import annotations

import numpy as np
import pytest

from aot.codegen.ir.loops import Var
from aot.compilation.driver import compile_model
from aot.ir.build import Builder
from aot.ir.graph import Graph
from aot.ir.op import Op
from aot.ir.types import Array
from aot.opset.control.demands import InRange
from aot.opset.control.infrastructure import Parameter, Result
from aot.opset.detection.proposals.proposal import Proposal_1
from aot.opset.reduction.bucketing import Bucketize, SearchSorted
from aot.opset.reduction.reduction import ReduceL2
from aot.opset.reduction.segments import GroupedMatMul
from aot.options import CompileOptions
from aot.runtime.abi import DType
from aot.runtime.errors import UsageError
from tests.properties.compiled import network
from tests.properties.drawing import Trial

RNG = np.random.default_rng(0)
NAN = np.nan
LEAST = -(2**63)


def some(*shape: int) -> Array:
    return RNG.integers(-4, 5, shape).astype(np.float32)


CASES: list[tuple[Op, list[Array]]] = [
    *(
        (Bucketize(with_right_bound=r), [some(3, 4), np.array(b, np.float32)])
        for r in (True, False)
        for b in (
            [3, 1, -2, 1],
            [],
            [0, NAN, -1],
            [-2, 0, 0, 1],
        )
    ),
    (Bucketize(), [np.array([[NAN, 1.5]], np.float32), np.array([-1, 0, 2], np.float32)]),
    *((SearchSorted(right_mode=r), [some(2, 7), some(2, 9)]) for r in (True, False)),
    *((SearchSorted(right_mode=r), [some(7), some(2, 9)]) for r in (True, False)),
    (SearchSorted(), [some(2, 0), some(2, 3)]),
    (GroupedMatMul(), [np.array([[2**31 - 1, 3]], np.int32), np.full((2, 3, 2), 5, np.int32), np.array([0, 1])]),
    (GroupedMatMul(), [np.full((2, 1, 2), 200, np.uint8), np.full((2, 3, 2), 3, np.uint8)]),
    (InRange("Squeeze", "axes must be -3 to 2", 3), [np.array([1, -3]), np.array(-3), np.array(2)]),
    (ReduceL2(), [np.array([1, -4, LEAST, 2]), np.array([0])]),
    (ReduceL2(), [np.array([-128, 127], np.int8), np.array([0])]),
    (ReduceL2(), [np.array([200, 255], np.uint8), np.array([0])]),
]


@pytest.mark.parametrize(("op", "arrays"), CASES, ids=[f"{k}-{c[0].type}" for k, c in enumerate(CASES)])
def test_references_agree_with_kernels(op: Op, arrays: list[Array]) -> None:
    graph, fed = network([Trial(op, arrays, fixed=frozenset((1,)) if isinstance(op, ReduceL2) else frozenset())])
    found = np.asarray(compile_model(graph, CompileOptions(level=None), threads=1)(fed)[0])
    np.testing.assert_array_equal(found, np.asarray(op.evaluate(*arrays)[0]).reshape(found.shape))


@pytest.mark.parametrize("divisor", [2, -3])
def test_roll_by_a_part_of_a_size_that_varies(divisor: int) -> None:
    """Shift x[.., n] by n / divisor, as fftshift does with a spectrum."""
    graph = Graph()
    build = Builder(graph)
    x = build(Parameter(DType.F32, (2, Var("n"))))
    size = build.Gather(build.ShapeOf(x), build.const([1], DType.I64), build.const(0, DType.I64))
    shift = build.Divide(size, divisor)
    build(Result(), build.Roll(x, shift, build.const([1], DType.I64)))
    model = compile_model(graph, CompileOptions(level=None), threads=1)
    for n in (1, 5, 8):
        data = np.arange(2 * n, dtype=np.float32).reshape(2, n)
        np.testing.assert_array_equal(model([data])[0], np.roll(data, n // divisor, 1))


@pytest.mark.parametrize("name", ["count", "n", "i", "j"])
@pytest.mark.parametrize("row", [False, True])
def test_a_count_of_scales_that_varies_is_three_or_four(name: str, row: bool) -> None:
    """Four numbers of an image for Proposal; its script has names of its own, which a size may have, too."""
    op = Proposal_1(
        base_size=16, pre_nms_topn=12, post_nms_topn=6, nms_thresh=0.7, feat_stride=16, min_size=6, ratio=(1.0, 2.0),
        scale=(1.0, 2.0),
    )  # fmt: skip
    scores, deltas = (RNG.uniform(0.1, 1, (1, n, 3, 4)).astype(np.float32) for n in (8, 16))
    graph = Graph()
    build = Builder(graph)
    size = (1, Var(name)) if row else (Var(name),)
    given = [build(Parameter(DType.F32, s)) for s in (scores.shape, deltas.shape, size)]
    build(Result(), build(op, *given))
    model = compile_model(graph, CompileOptions(level=None), threads=1)
    numbers = np.array([60, 70, 0.5, 9, 1], np.float32)
    results = list[Array]()
    for count in (3, 4):
        image = numbers[None, :count] if row else numbers[:count]
        expected = np.asarray(op.evaluate(scores, deltas, image)[0])
        results.append(np.asarray(model([scores, deltas, image])[0]))
        np.testing.assert_allclose(results[-1], expected, rtol=1e-4, atol=1e-4)
    assert not np.allclose(results[0], results[1])
    for count in (2, 5):
        with pytest.raises(UsageError, match="numbers of an image must be three or four"):
            model([scores, deltas, numbers[None, :count] if row else numbers[:count]])


@pytest.mark.parametrize(("right", "side"), [(True, "left"), (False, "right")])
def test_boundaries_in_order_are_searched_as_by_numpy(right: bool, side: str) -> None:
    x, boundaries = some(5, 6), np.sort(some(6))
    found = Bucketize(with_right_bound=right).evaluate(x, boundaries)[0]
    np.testing.assert_array_equal(found, np.searchsorted(boundaries, x, side=side))
    rows = np.sort(some(5, 8))
    expected = [np.searchsorted(r, v, side=side) for r, v in zip(rows, x, strict=True)]
    np.testing.assert_array_equal(SearchSorted(right_mode=not right).evaluate(rows, x)[0], expected)
