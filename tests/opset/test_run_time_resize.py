"""Interpolate whose sizes or scales are inputs: one compiled model for all of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from aot.codegen.ir.loops import Var
from aot.compilation.driver import compile_model
from aot.ir.graph import Graph, OutPort
from aot.ir.types import Array, dtype_of
from aot.opset.control.infrastructure import Constant, Parameter, Result
from aot.opset.image.resize import Interpolate_1, Interpolate_4, Interpolate_11, Interpolation, ShapeFrom
from aot.opset.image.resize_weights import Coordinates, Mode, Rounding
from aot.options import CompileOptions
from aot.runtime.errors import UsageError

FAST = CompileOptions(level=None)
RNG = np.random.default_rng(5)
PICTURE = RNG.standard_normal((1, 2, 5, 8)).astype(np.float32)
BYTES = RNG.integers(0, 256, (1, 2, 5, 8)).astype(np.uint8)
SMOOTH = (Mode.LINEAR, Mode.LINEAR_ONNX, Mode.CUBIC)
PILLOW = (Mode.BILINEAR_PILLOW, Mode.BICUBIC_PILLOW)
SIZES = [np.array(s, np.int64) for s in ((10, 4), (5, 8), (3, 20), (1, 1), (7, 3))]
SCALED = [np.array(s, np.float32) for s in ((2, 0.5), (1, 1), (0.6, 2.5), (1.4, 1.5), (0.3, 0.3))]
BY_SCALES = ShapeFrom.SCALES


def compiled(op: Interpolation, data: Array, wanted: Array, varies: bool) -> Graph:
    graph, ports = Graph("resize"), list[OutPort | None]()
    shape = tuple(Var(f"n{d}") for d in range(4)) if varies else data.shape
    ports.append(graph.add(Parameter(dtype_of(data), shape), name="x").out_port(0))
    asked = graph.add(Parameter(dtype_of(wanted), wanted.shape), name="wanted").out_port(0)
    axes = graph.add(Constant(dtype_of(SIZES[0])), name="axes", data=np.array([2, 3])).out_port(0)
    unused = graph.add(Constant(dtype_of(SIZES[0])), name="sizes", data=SIZES[0]).out_port(0)
    if isinstance(op, Interpolate_4):
        ports += [unused, asked, axes] if op.shape_calculation_mode is BY_SCALES else [asked, None, axes]
    else:
        ports += [asked] if isinstance(op, Interpolate_1) else [asked, axes]
    graph.add(Result(), graph.add(op, *ports, name="op").out_port(0))
    return graph


def expected(op: Interpolation, data: Array, wanted: Array) -> Array:
    axes = np.array([2, 3])
    if isinstance(op, Interpolate_4):
        scaled = op.shape_calculation_mode is BY_SCALES
        return op.evaluate(data, None if scaled else wanted, wanted if scaled else None, axes)[0]
    return op.evaluate(data, wanted, *([] if isinstance(op, Interpolate_1) else [axes]))[0]


def check(op: Interpolation, data: Array, asked: Sequence[Array], varies: bool = False) -> None:
    model = compile_model(compiled(op, data, asked[0], varies), FAST, threads=1)
    for wanted in asked:
        found, right = np.asarray(model(data, wanted)[0]), expected(op, data, wanted)
        assert found.shape == right.shape and found.dtype == right.dtype
        gap = 1 if data.dtype == np.uint8 else 2e-5  # a byte half-way between two may be either of them
        assert np.abs(found.astype(np.float64) - right.astype(np.float64)).max(initial=0) <= gap, (wanted, found, right)


@pytest.mark.parametrize("kind", Coordinates)
@pytest.mark.parametrize("mode", [Mode.NEAREST, Mode.LINEAR, Mode.CUBIC])
def test_resize_by_computed_scales(mode: Mode, kind: Coordinates) -> None:
    rounding = Rounding.FLOOR if mode is Mode.NEAREST else Rounding.ROUND_PREFER_FLOOR  # others depend on exact halves
    op = Interpolate_11(mode, False, (), (), BY_SCALES, kind, rounding)
    check(op, PICTURE, SCALED[:2] if mode is Mode.NEAREST else SCALED)


@pytest.mark.parametrize("rounding", Rounding)
def test_nearest_of_scales_that_are_exact(rounding: Rounding) -> None:
    exact = [np.array(s, np.float32) for s in ((2, 0.5), (1.5, 1), (0.25, 3))]
    check(Interpolate_4(Mode.NEAREST, False, (), (), BY_SCALES, Coordinates.HALF_PIXEL, rounding), PICTURE, exact)


@pytest.mark.parametrize("varies", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("mode", [Mode.NEAREST, *SMOOTH])
def test_resize_to_computed_sizes(mode: Mode, varies: bool) -> None:
    check(Interpolate_4(mode), PICTURE, SIZES, varies)


@pytest.mark.parametrize("scaled", [False, True], ids=["sizes", "scales"])
@pytest.mark.parametrize("mode", [Mode.LINEAR, Mode.LINEAR_ONNX, *PILLOW])
def test_many_neighbours(mode: Mode, scaled: bool) -> None:
    how = BY_SCALES if scaled else ShapeFrom.SIZES
    check(Interpolate_11(mode, True, shape_calculation_mode=how), PICTURE, SCALED if scaled else SIZES, True)


@pytest.mark.parametrize("mode", [Mode.LINEAR, *PILLOW])
def test_resize_of_bytes_by_computed_scales(mode: Mode) -> None:
    check(Interpolate_11(mode, shape_calculation_mode=BY_SCALES), BYTES, SCALED)


def test_pads_and_the_first_version() -> None:
    check(Interpolate_11(Mode.LINEAR, False, (0, 0, 1, 0), (0, 0, 0, 2), BY_SCALES), PICTURE, SCALED)
    check(Interpolate_1(Mode.LINEAR, axes=(2, 3)), PICTURE, SIZES, True)


@pytest.mark.parametrize("bad", [(0, 1), (-1, 1), (np.nan, 1), (1, np.inf)])
def test_scales_without_a_meaning(bad: tuple[float, float]) -> None:
    op = Interpolate_11(Mode.LINEAR, shape_calculation_mode=BY_SCALES)
    model = compile_model(compiled(op, PICTURE, SCALED[0], False), FAST, threads=1)
    with pytest.raises(UsageError, match=r"Interpolate '.*': scales must be positive and finite"):
        model(PICTURE, np.array(bad, np.float32))
    assert model(PICTURE, SCALED[0])[0].shape == (1, 2, 10, 4)
