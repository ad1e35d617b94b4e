"""Orders, axes, counts and sizes that only an inference knows, and dimensions of size 0."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from aot.codegen.ir.loops import Var
from aot.compilation.driver import compile_model
from aot.ir.graph import Graph, OutPort
from aot.ir.op import Op
from aot.ir.text.parser import parse_graph
from aot.ir.text.printer import print_graph
from aot.ir.types import Array, dtype_of
from aot.opset.control.infrastructure import Constant, Parameter, Result
from aot.opset.detection.region import RegionYolo
from aot.opset.detection.suppression.suppression import NonMaxSuppression
from aot.opset.elementwise.activation import PRelu
from aot.opset.elementwise.binary import Add, Maximum
from aot.opset.movement.movement import Transpose
from aot.opset.movement.padding import Pad, PadMode
from aot.opset.movement.shape import Reshape
from aot.opset.movement.slicing import Slice
from aot.opset.reduction.bucketing import SearchSorted
from aot.opset.reduction.nonzero import Unique
from aot.opset.reduction.softmax import LogSoftmax, Softmax
from aot.options import CompileOptions
from aot.runtime.errors import UsageError
from aot.runtime.model import CompiledModel

FAST = CompileOptions(level=None)
DATA = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
NONE = np.empty((0, 3), np.float32)


def network(op: Op, given: Sequence[Array], known: Sequence[Array] = (), *, late: bool = False) -> Graph:
    """`known` inputs follow the given ones; `late`: dimensions of floats are known at run time only."""
    graph = Graph("late")
    ports: list[OutPort] = []
    for k, array in enumerate(given):
        sizes = tuple(Var(f"n{k}_{a}") for a in range(array.ndim)) if late and array.dtype.kind == "f" else array.shape
        ports.append(graph.add(Parameter(dtype_of(array), sizes), name=f"x{k}").out_port(0))
    for k, array in enumerate(known):
        ports.append(graph.add(Constant(dtype_of(array)), name=f"c{k}", data=array).out_port(0))
    with np.errstate(all="ignore"):
        outputs = len(op.evaluate(*given, *known))
    for port in graph.add(op, *ports, name="op", outputs=outputs).out_ports().values():
        graph.add(Result(), port)
    return graph


def model(op: Op, given: Sequence[Array], known: Sequence[Array] = (), *, late: bool = False) -> CompiledModel:
    return compile_model(network(op, given, known, late=late), FAST, threads=1)


def check(op: Op, given: Sequence[Array], known: Sequence[Array] = (), *, late: bool = False) -> list[Array]:
    """The results, which are those of the reference."""
    found = model(op, given, known, late=late)(*given)
    with np.errstate(all="ignore"):
        expected = op.evaluate(*given, *known)
    for k, array in enumerate(expected):
        assert found[k].shape == array.shape and found[k].dtype == array.dtype
        np.testing.assert_allclose(found[k], array, rtol=1e-5)
    return list(expected)


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("order", [(2, 0, 1), (0, 1, 2), (2, 1, 0)])
def test_order_of_a_transpose(order: tuple[int, ...], late: bool) -> None:
    (found,) = check(Transpose(), [DATA, np.array(order)], late=late)
    assert np.array_equal(found, DATA.transpose(order))


@pytest.mark.parametrize("order", [(0, 0, 1), (0, 1, 3), (-1, 0, 1)])
def test_invalid_orders_are_refused(order: tuple[int, ...]) -> None:
    compiled = model(Transpose(), [DATA, np.array([0, 1, 2])])
    with pytest.raises(UsageError, match=r"Transpose 'op': order must be a permutation of 3 dimensions"):
        compiled(DATA, np.array(order))


@pytest.mark.parametrize("axes", [(0, -1), (2, 0), (-2, 2)])
def test_axes_of_a_slice(axes: tuple[int, ...]) -> None:
    bounds = [np.array([0, 2]), np.array([9, -9]), np.array([1, -1])]
    check(Slice(), [DATA, *bounds, np.array(axes)])


def test_axes_that_the_data_do_not_have() -> None:
    bounds = [np.array([0]), np.array([1]), np.array([1])]
    compiled = model(Slice(), [DATA, *bounds, np.array([0])])
    with pytest.raises(UsageError, match=r"Slice 'op': axes are -3 to 2, got"):
        compiled(DATA, *bounds, np.array([3]))


@pytest.mark.parametrize("mode", [PadMode.REFLECT, PadMode.SYMMETRIC])
def test_counts_of_mirrored_pads_along_two_dimensions(mode: PadMode) -> None:
    check(Pad(mode), [DATA[0], np.array([1, 0]), np.array([0, 2])])


@pytest.mark.parametrize("late", [False, True])
def test_copied_dimensions_of_size_0_leave_a_size_to_infer(late: bool) -> None:
    empty = np.empty((2, 0, 3), np.float32)
    (found,) = check(Reshape(special_zero=True), [empty], [np.array([0, 0, -1])], late=late)
    assert found.shape == (2, 0, 3)


@pytest.mark.parametrize("op", [Add(), Maximum()])
def test_empty_dimensions_stretch_ones(op: Op) -> None:
    for one in (DATA[0, :1, :3], DATA[0, :1, :1]):
        (found,) = check(op, [NONE, one], late=True)
        assert found.shape == (0, 3)


@pytest.mark.parametrize("op", [Softmax(0), LogSoftmax(0), Softmax(-1)])
def test_softmax_of_nothing(op: Op) -> None:
    check(op, [NONE])


def test_searching_nothing() -> None:
    (found,) = check(SearchSorted(), [NONE.T, np.ones((3, 2), np.float32)])
    assert not found.any()


def test_pads_of_a_scalar() -> None:
    check(Pad(), [np.array(2.0, np.float32)], [np.array([], np.int64)] * 2)


def test_regions_whose_last_dimension_is_known_late() -> None:
    x = np.random.default_rng(0).normal(size=(1, 14, 2, 3)).astype(np.float32)
    check(RegionYolo(axis=1, end_axis=2, classes=2, num=2), [x], late=True)


def test_scores_of_short_floats_are_f32() -> None:
    boxes = np.array([[[0, 0, 1, 1], [5, 5, 6, 6]]], np.float16)
    scores = np.array([[[0.75, 0.5]]], np.float16)
    found = check(NonMaxSuppression(), [boxes, scores], [np.array(2)])
    assert found[1].tolist() == [[0, 0, 0.75], [0, 0, 0.5]]


@pytest.mark.parametrize(
    ("op", "given"),
    [(Transpose(), [DATA, np.array([2, 0, 1])]), (Slice(), [DATA, *np.array([[0], [1], [1], [1]])])],
    ids=["order", "slice"],
)
def test_sizes_are_read_back_from_text(op: Op, given: Sequence[Array]) -> None:
    text = print_graph(network(op, given))
    assert "select(" in text and print_graph(parse_graph(text)) == text


def test_elements_that_openvino_takes_too() -> None:
    (found,) = check(PRelu(), [np.array([[-2, 3]], np.int32)], [np.array([3, 3], np.int32)])
    assert found.tolist() == [[-6, 3]]
    assert check(Unique(), [np.array([True, False, True])])[0].tolist() == [False, True]
