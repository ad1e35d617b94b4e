"""Interpolate whose sizes or scales are inputs: one compiled model for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
from tests.each import check_each

FAST = CompileOptions(level=None)
RNG = np.random.default_rng(5)
PICTURE = RNG.standard_normal((1, 2, 5, 8)).astype(np.float32)
BYTES = RNG.integers(0, 256, (1, 2, 5, 8)).astype(np.uint8)
SMOOTH = (Mode.LINEAR, Mode.LINEAR_ONNX, Mode.CUBIC)
PILLOW = (Mode.BILINEAR_PILLOW, Mode.BICUBIC_PILLOW)
SIZES = [np.array(s, np.int64) for s in ((10, 4), (5, 8), (3, 20), (1, 1), (7, 3))]
SCALED = [np.array(s, np.float32) for s in ((2, 0.5), (1, 1), (0.6, 2.5), (1.4, 1.5), (0.3, 0.3))]
BY_SCALES = ShapeFrom.SCALES


@dataclass(frozen=True)
class Resize:
    """An operation, and the sizes or scales that it is asked for in turn; `varies`: its data have any size."""

    op: Interpolation
    asked: Sequence[Array]
    varies: bool = False
    is_bytes: bool = False

    @property
    def data(self) -> Array:
        return BYTES if self.is_bytes else PICTURE


def network(resizes: Sequence[Resize]) -> Graph:
    """One network of all; the second input of each is what it is asked for."""
    graph = Graph("resize")
    for n, resize in enumerate(resizes):
        op, data, wanted = resize.op, resize.data, resize.asked[0]
        shape = tuple(Var(f"n{n}_{d}") for d in range(4)) if resize.varies else data.shape
        ports: list[OutPort | None] = [graph.add(Parameter(dtype_of(data), shape), name=f"x{n}").out_port(0)]
        asked = graph.add(Parameter(dtype_of(wanted), wanted.shape), name=f"wanted{n}").out_port(0)
        axes = graph.add(Constant(dtype_of(SIZES[0])), name=f"axes{n}", data=np.array([2, 3])).out_port(0)
        if isinstance(op, Interpolate_4):
            unused = graph.add(Constant(dtype_of(SIZES[0])), name=f"sizes{n}", data=SIZES[0]).out_port(0)
            ports += [unused, asked, axes] if op.shape_calculation_mode is BY_SCALES else [asked, None, axes]
        else:
            ports += [asked] if isinstance(op, Interpolate_1) else [asked, axes]
        graph.add(Result(), graph.add(op, *ports, name=f"op{n}").out_port(0))
    return graph


def expected(op: Interpolation, data: Array, wanted: Array) -> Array:
    axes = np.array([2, 3])
    if isinstance(op, Interpolate_4):
        scaled = op.shape_calculation_mode is BY_SCALES
        return op.evaluate(data, None if scaled else wanted, wanted if scaled else None, axes)[0]
    return op.evaluate(data, wanted, *([] if isinstance(op, Interpolate_1) else [axes]))[0]


def check(*resizes: Resize) -> None:
    model = compile_model(network(resizes), FAST, threads=1)
    for turn in range(max(len(r.asked) for r in resizes)):
        wanted = [r.asked[turn % len(r.asked)] for r in resizes]
        found = model(*(array for r, size in zip(resizes, wanted, strict=True) for array in (r.data, size)))
        outputs = [np.asarray(found[n]) for n in range(len(resizes))]
        check_each(lambda row: check_one(*row), zip(outputs, resizes, wanted, strict=True), lambda row: str(row[1].op))


def check_one(found: Array, resize: Resize, wanted: Array) -> None:
    right = expected(resize.op, resize.data, wanted)
    assert found.shape == right.shape and found.dtype == right.dtype
    gap = 1 if resize.is_bytes else 2e-5  # a byte half-way between two may be either of them
    assert np.abs(found.astype(np.float64) - right.astype(np.float64)).max(initial=0) <= gap, (wanted, found, right)


def test_resize_by_computed_scales() -> None:
    """Each way to count coordinates with two modes, each mode with all of them or two."""
    pairs = [(Mode.NEAREST, kind) for kind in Coordinates]
    pairs += [((Mode.LINEAR, Mode.CUBIC)[n % 2], kind) for n, kind in enumerate(Coordinates)]
    resizes = list[Resize]()
    for mode, kind in pairs:
        nearest = mode is Mode.NEAREST
        rounding = Rounding.FLOOR if nearest else Rounding.ROUND_PREFER_FLOOR  # others depend on exact halves
        op = Interpolate_11(mode, False, (), (), BY_SCALES, kind, rounding)
        resizes.append(Resize(op, SCALED[:2] if nearest else SCALED))
    check(*resizes)


def test_nearest_of_scales_that_are_exact() -> None:
    exact = [np.array(s, np.float32) for s in ((2, 0.5), (1.5, 1), (0.25, 3))]
    half = Coordinates.HALF_PIXEL
    ops = [Interpolate_4(Mode.NEAREST, False, (), (), BY_SCALES, half, rounding) for rounding in Rounding]
    check(*(Resize(op, exact) for op in ops))


def test_resize_to_computed_sizes() -> None:
    check(*(Resize(Interpolate_4(mode), SIZES, varies) for mode in (Mode.NEAREST, *SMOOTH) for varies in (False, True)))


@pytest.mark.slow
def test_many_neighbours() -> None:
    """By sizes and by scales, a mode each of ours and of Pillow."""
    sizes = [Resize(Interpolate_11(mode, True), SIZES, True) for mode in (Mode.LINEAR, Mode.BICUBIC_PILLOW)]
    modes = (Mode.LINEAR_ONNX, Mode.BILINEAR_PILLOW)
    ops = [Interpolate_11(mode, True, shape_calculation_mode=BY_SCALES) for mode in modes]
    check(*sizes, *(Resize(op, SCALED, True) for op in ops))


def test_resize_of_bytes_by_computed_scales() -> None:
    ops = [Interpolate_11(mode, shape_calculation_mode=BY_SCALES) for mode in (Mode.LINEAR, *PILLOW)]
    check(*(Resize(op, SCALED, is_bytes=True) for op in ops))


def test_pads_and_the_first_version() -> None:
    padded = Interpolate_11(Mode.LINEAR, False, (0, 0, 1, 0), (0, 0, 0, 2), BY_SCALES)
    check(Resize(padded, SCALED), Resize(Interpolate_1(Mode.LINEAR, axes=(2, 3)), SIZES, True))


def test_scales_without_a_meaning() -> None:
    op = Interpolate_11(Mode.LINEAR, shape_calculation_mode=BY_SCALES)
    model = compile_model(network([Resize(op, SCALED)]), FAST, threads=1)
    for bad in ((0, 1), (-1, 1), (np.nan, 1), (1, np.inf)):
        with pytest.raises(UsageError, match=r"Interpolate '.*': scales must be positive and finite"):
            model(PICTURE, np.array(bad, np.float32))
        assert model(PICTURE, SCALED[0])[0].shape == (1, 2, 10, 4)
