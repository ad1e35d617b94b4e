"""Transcendental functions against numpy in f64, in units in the last place, and at their edges."""

from __future__ import annotations

import math

import numpy as np
import pytest

from aot.codegen.costs import COSTS
from aot.codegen.ir.definition import Definition
from aot.codegen.ir.loops import Kernel, Var, dense, prim
from aot.codegen.ir.schedule import Schedule
from aot.codegen.llvm.emit.kernel import emit
from aot.codegen.llvm.host import parse_target
from aot.codegen.nest.nest import apply
from aot.runtime.abi import DType
from tests.codegen.running import aligned, compiled

REFERENCE = {
    "exp": ((-87.3, 88.7), np.exp),
    "exp_normal": ((-87.3, 88.3), np.exp),
    "log": ((1e-6, 1e4), np.log),
    "tanh": ((-12, 12), np.tanh),
    "erf": ((-5, 5), np.vectorize(math.erf)),
    "sin": ((-100, 100), np.sin),
    "cos": ((-100, 100), np.cos),
    "tan": ((-10, 10), np.tan),
    "asin": ((-1, 1), np.arcsin),
    "acos": ((-1, 1), np.arccos),
    "atan": ((-50, 50), np.arctan),
    "sinh": ((-89, 89), np.sinh),
    "cosh": ((-89, 89), np.cosh),
    "asinh": ((-100, 100), np.arcsinh),
    "acosh": ((1, 100), np.arccosh),
    "atanh": ((-1, 1), np.arctanh),
}
ULP32 = {"exp": 1.0, "exp_normal": 1.0, "log": 1.0, "tanh": 2.5, "erf": 6.0}  # the others are rounded from f64
EDGES = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-30, -1e-30, 1.0, -1.0, 1e5, -1e5])
NUMPY = {DType.F32: "f4", DType.F64: "f8"}


def run(fn: str, dtype: DType, *xs: np.ndarray, target: str = "native") -> np.ndarray:
    n, i = len(xs[0]), Var("i", len(xs[0]))
    buffers = [dense(f"x{q}", n, dtype=dtype) for q in range(len(xs))]
    y = dense("y", n, dtype=dtype)
    kernel = apply(fn, Definition(y, (i,), prim(fn, *(b[i] for b in buffers))), Schedule(lanes=("i", 8)), (*buffers, y))
    out = aligned(np.zeros(n, NUMPY[dtype]))
    compiled(kernel, parse_target(target))(*(aligned(x.astype(NUMPY[dtype])) for x in xs), out)
    return out


def error(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """In units in the last place of the type of `got`."""
    with np.errstate(all="ignore"):
        rounded = want.astype(got.dtype)
        same = (rounded == got) | (np.isnan(rounded) & np.isnan(got))
        distance = np.abs(got.astype("f8") - want) / np.spacing(np.abs(rounded)).astype("f8")
    return np.where(same, 0, np.where(np.isnan(distance), np.inf, distance))


@pytest.mark.parametrize("target", ["native", "x86-64-v2"])
@pytest.mark.parametrize("fn", REFERENCE)
def test_functions_of_f32_keep_their_bounds_in_ulp(fn: str, target: str) -> None:
    (low, high), reference = REFERENCE[fn]
    x = np.concatenate([np.linspace(low, high, 4096), np.linspace(-1.2, 1.2, 1000), EDGES]).astype("f4")
    with np.errstate(all="ignore"):
        want = reference(x.astype("f8"))
    e = error(run(fn, DType.F32, x, target=target), want)
    assert e.max() <= ULP32.get(fn, 1.0), (x[e.argmax()], e.max())


@pytest.mark.parametrize("fn", REFERENCE)
def test_functions_of_f64_are_those_of_numpy(fn: str) -> None:
    (low, high), reference = REFERENCE[fn]
    x = np.concatenate([np.linspace(low, high, 4096), np.linspace(-1.2, 1.2, 1000), EDGES])
    with np.errstate(all="ignore"):
        want = reference(x)
    got = run(fn, DType.F64, x)
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=0 if fn not in ("sin", "cos", "tan") else 1e-14)


def test_range_of_exp_and_log() -> None:
    x = np.array([88.722, 88.73, 1e30, np.inf, -86.9, -87.33, -104.1, -1e30, -np.inf, np.nan])
    got = run("exp", DType.F32, x)
    with np.errstate(all="ignore"):
        want = np.exp(x.astype("f4").astype("f8")).astype("f4")
    np.testing.assert_allclose(got, want, rtol=2e-7)
    assert (got[[2, 3]] == np.inf).all()
    assert (got[[6, 7, 8]] == 0).all()
    normal = run("exp_normal", DType.F32, x)
    np.testing.assert_array_equal(normal[1:5], [np.inf, np.inf, np.inf, got[4]])
    assert (normal[[6, 7, 8]] == 0).all()
    assert np.isnan(normal[9])
    logs = run("log", DType.F32, np.array([0.0, -0.0, -1.0, np.inf, np.nan, 1e-40, 3e38, 1.0]))
    assert logs[0] == logs[1] == -np.inf
    assert np.isnan(logs[[2, 4]]).all()
    assert (logs[3], logs[7]) == (np.inf, 0)
    np.testing.assert_allclose(logs[5:7], np.log(np.array([1e-40, 3e38])), rtol=1e-5)


@pytest.mark.parametrize("dtype", [DType.F32, DType.F64])
@pytest.mark.parametrize(("fn", "reference"), [("pow", np.power), ("atan2", np.arctan2)])
def test_two_arguments(fn: str, reference: np.ufunc, dtype: DType) -> None:
    r = np.random.default_rng(0)
    edges = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 3.0, -3.0])
    a = np.concatenate([r.uniform(0, 20, 2000), r.uniform(-20, 0, 500), np.repeat(edges, 13)]).astype(NUMPY[dtype])
    b = np.concatenate([r.uniform(-20, 20, 2000), r.integers(-9, 9, 500), np.tile(edges, 13)]).astype(NUMPY[dtype])
    with np.errstate(all="ignore"):
        want = reference(a.astype("f8"), b.astype("f8"))
    got = run(fn, dtype, a, b)
    np.testing.assert_allclose(got, want, rtol=1e-6 if dtype is DType.F32 else 1e-12)
    np.testing.assert_array_equal(np.signbit(got[~np.isnan(got)]), np.signbit(want[~np.isnan(want)]))


def test_integer_power() -> None:
    i = Var("i", 6)
    x, y, z = (dense(n, 6, dtype=DType.I32) for n in "xyz")
    kernel = apply("k", Definition(z, (i,), prim("pow", x[i], y[i])), Schedule(lanes=("i", 4)), (x, y, z))
    a, b = np.array([2, -3, 7, 0, -1, 1], "i4"), np.array([10, 3, 11, 0, -3, -5], "i4")
    out = aligned(np.zeros(6, "i4"))
    compiled(kernel)(aligned(a), aligned(b), out)
    assert out.tolist() == [1024, -27, 1977326743, 1, -1, 1]


@pytest.mark.parametrize("target", ["native", "x86-64-v2"])
def test_a_kernel_calls_functions_that_it_computes_at_many_places(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The numbers are those of functions that are written out at each place."""
    machine = parse_target(target)
    x = np.linspace(-3, 3, 41).astype("f4")

    def kernel(places: int) -> Kernel:
        i, given, out = Var("i", len(x)), dense("x", len(x)), dense("y", len(x))
        value = given[i]
        for k in range(places):
            value = value + prim(("tanh", "exp_normal", "erf")[k % 3], given[i] * (k / places))
        return apply("k", Definition(out, (i,), value), Schedule(lanes=("i", 8)), (given, out))

    def found(places: int) -> np.ndarray:
        out = aligned(np.zeros(len(x), "f4"))
        compiled(kernel(places), machine)(aligned(x), out)
        return out

    few, many = COSTS.max_written_functions, COSTS.max_written_functions + 1
    assert not emit(kernel(few), target=machine).globals
    assert sum("define internal" in g for g in emit(kernel(many), target=machine).globals) >= 3
    called = found(many)
    monkeypatch.setattr(COSTS, "max_written_functions", many)
    assert not emit(kernel(many), target=machine).globals
    np.testing.assert_array_equal(called, found(many))
