"""The greatest value of an index, and rules on sizes that follow from it."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from aot.codegen.ir.loops import Const, Expr, Var, prim
from aot.compilation.driver import compile_model
from aot.ir.graph import Graph
from aot.lowering.ir.greatest import MAX_POINTS, greatest
from aot.opset.control.infrastructure import Parameter, Result
from aot.opset.movement.blocks import ReorgYolo
from aot.options import CompileOptions
from aot.runtime.abi import DType

C, H, N = Var("c", 16), Var("h", 3), Var("n")


@pytest.mark.parametrize(
    ("index", "right"),
    [
        (C * 2 + H - 1, 31),
        (C // 4 * 4 + (C % 4 * 3 + H) // 2, 17),
        (C - C // 2 * 3, 1),  # 1 - 0; the ends give 15 - 0
        (C % 5 * 3 + C // 5 % 2, 13),
        (prim("min", C, 7) + prim("max", H, 1), 9),
        (Var("r", 7, 3) * 2 + H, 14),  # r begins at 3
        (Const(5), 5),
        (C + N, None),
        (C * Var("many", MAX_POINTS), None),
    ],
)
def test_the_greatest_value_is_reached(index: Expr, right: int | None) -> None:
    assert greatest(index) == right


MASKS = list(itertools.product([False, True], repeat=4))[1:]


@pytest.mark.parametrize(
    ("stride", "shape", "varying"),
    [
        *((2, (2, 4, 6, 4), mask) for mask in MASKS if sum(mask) != 2),
        *((stride, shape, MASKS[-1]) for stride, shape in ((2, (1, 12, 6, 2)), (3, (2, 9, 6, 3)))),
    ],
)
def test_reorg_takes_each_dimension_varying(stride: int, shape: tuple[int, ...], varying: tuple[bool, ...]) -> None:
    """Its rows are quotients and remainders of the same axes."""
    graph = Graph("reorg")
    dims = tuple(Var(f"n{k}") if v else n for k, (n, v) in enumerate(zip(shape, varying, strict=True)))
    x = graph.add(Parameter(DType.F32, dims), name="x")
    graph.add(Result(), graph.add(ReorgYolo((stride,)), x.out_port(0), name="y").out_port(0))
    model = compile_model(graph, CompileOptions(level=None), threads=1)
    for times in (1, 2):
        sizes = [n * times if v else n for n, v in zip(shape, varying, strict=True)]
        data = np.arange(np.prod(sizes), dtype=np.float32).reshape(sizes)
        assert np.array_equal(model(data)[0], darknet(data, stride))


def darknet(x: np.ndarray, stride: int) -> np.ndarray:
    """reorg_cpu of Darknet, forward = 0, into a flat array."""
    n, c, h, w = x.shape
    out, flat = np.zeros(x.size, x.dtype), x.reshape(-1)
    deep = c // stride**2
    for b, k, j, i in np.ndindex(n, c, h, w):
        part, offset = k % deep, k // deep
        row, column = j * stride + offset // stride, i * stride + offset % stride
        out[i + w * (j + h * (k + c * b))] = flat[column + w * stride * (row + h * stride * (part + deep * b))]
    return out.reshape(n, c * stride**2, h // stride, w // stride)
