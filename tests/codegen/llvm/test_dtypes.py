"""Every element type: memory, casts, comparisons, division and their edges, scalar and vector."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from aot.codegen.ir.definition import Definition, identity
from aot.codegen.ir.loops import Const, Expr, Load, Reduce, Var, cast, dense, prim, select
from aot.codegen.ir.schedule import Schedule
from aot.codegen.llvm.host import parse_target
from aot.codegen.nest.nest import apply
from aot.runtime.abi import DType
from tests.codegen.running import aligned, compiled

NUMPY = {
    DType.F64: "f8",
    DType.F32: "f4",
    DType.F16: "f2",
    DType.BF16: ml_dtypes.bfloat16,
    DType.I64: "i8",
    DType.I32: "i4",
    DType.I16: "i2",
    DType.I8: "i1",
    DType.U64: "u8",
    DType.U32: "u4",
    DType.U16: "u2",
    DType.U8: "u1",
    DType.BOOL: "?",
}
INTEGERS = [t for t in NUMPY if t.is_integer]
FLOATS = [DType.F64, DType.F32]
Array = np.ndarray


def run(value: object, out: DType, *inputs: tuple[DType, Array], lanes: int = 8, target: str = "native") -> Array:
    """`value(*loads)` for each element."""
    n = len(inputs[0][1])
    i = Var("i", n)
    buffers = [dense(f"x{q}", n, dtype=t) for q, (t, _) in enumerate(inputs)]
    y = dense("y", n, dtype=out)
    work = Definition(y, (i,), value(*(b[i] for b in buffers)))  # type: ignore[operator]
    kernel = apply("k", work, Schedule(lanes=("i", lanes)), (*buffers, y))
    arrays = [aligned(np.asarray(a).astype(NUMPY[t])) for t, a in inputs]
    result = aligned(np.zeros(n, NUMPY[out]))
    compiled(kernel, parse_target(target))(*arrays, result)
    return result


def edges(t: DType) -> Array:
    if t is DType.BOOL:
        return np.array([0, 1] * 6 + [1], "?")
    if t.is_float:
        big = 6e4 if t is DType.F16 else 1e9
        return np.array([0.0, -0.0, 1.5, -1.5, 2.5, -7.0, big, -big, 300.0, 0.1, np.inf, -np.inf, np.nan], NUMPY[t])
    info = np.iinfo(NUMPY[t])
    return np.array(
        [0, 1, 2, 3, 5, 7, 100, info.max, info.max - 1, info.min, info.min + 1, info.max // 2, info.max // 3], NUMPY[t]
    )


def saturated(x: Array, t: DType) -> Array:
    info = np.iinfo(NUMPY[t])
    return np.array(
        [0 if v != v else info.min if v <= info.min else info.max if v >= info.max else int(v) for v in x.tolist()],
        NUMPY[t],
    )


@pytest.mark.parametrize(("src", "lanes"), [(t, (8, 1)[n % 2]) for n, t in enumerate(NUMPY)] + [(DType.F32, 1)])
def test_conversions_are_those_of_numpy_and_saturate(src: DType, lanes: int) -> None:
    x = edges(src)
    for dst in (t for t in NUMPY if t.compute is t):
        got = run(lambda a, dst=dst: cast(a, dst), dst, (src, x), lanes=lanes)
        with np.errstate(all="ignore"):
            wide = x.astype("f4") if src.bits == 16 and src.is_float else x
            want = saturated(wide, dst) if src.is_float and dst.is_integer else wide.astype(NUMPY[dst])
        np.testing.assert_array_equal(got, want, err_msg=f"{src.value} -> {dst.value}")


@pytest.mark.parametrize("target", ["native", "x86-64-v2", "x86-64-v3"])
@pytest.mark.parametrize("dtype", [DType.F16, DType.BF16])
def test_short_floats(dtype: DType, target: str) -> None:
    bits = np.random.default_rng(0).integers(0, 1 << 32, 4096, dtype=np.uint64).astype(np.uint32)
    ties = (np.arange(4096, dtype=np.uint32) << 16) + np.uint32(0x3F001000)
    near = np.linspace(-70000, 70000, 2048).astype("f4")
    tiny = np.linspace(-1e-4, 1e-4, 2048).astype("f4") * np.float32(0.7)
    x = np.concatenate([bits.view("f4"), ties.view("f4"), near, tiny, edges(DType.F32)])
    kind = "f2" if dtype is DType.F16 else ml_dtypes.bfloat16
    with np.errstate(all="ignore"):
        want = x.astype(kind)
    got = run(lambda a: a, dtype, (DType.F32, x), target=target)
    both_nan = np.isnan(want.astype("f4")) & np.isnan(got.astype("f4"))
    np.testing.assert_array_equal(np.where(both_nan, 0, got.view("u2")), np.where(both_nan, 0, want.view("u2")))
    every = np.arange(1 << 16, dtype=np.uint16).view(kind)
    np.testing.assert_array_equal(run(lambda a: a, DType.F32, (dtype, every), target=target), every.astype("f4"))


@pytest.mark.parametrize(("dtype", "lanes"), [(t, (4, 1)[n % 2]) for n, t in enumerate(INTEGERS)] + [(DType.I32, 1)])
def test_primitives_of_integers_are_exact(dtype: DType, lanes: int) -> None:
    """Division never traps; comparisons, shifts and minima follow the sign of the type."""
    line = np.concatenate([edges(dtype), ~np.zeros(1, NUMPY[dtype])])
    x, y = (v.ravel() for v in np.meshgrid(line, line))

    def exact(fn: str, a: int, b: int) -> int:
        if fn in ("div", "rem"):
            q = 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
            return q if fn == "div" else 0 if b == 0 else a - q * b
        if fn in ("floordiv", "mod"):
            return 0 if b == 0 else a // b if fn == "floordiv" else a % b
        return {"add": a + b, "sub": a - b, "mul": a * b, "min": min(a, b), "max": max(a, b)}[fn]

    pairs = list(zip(x.tolist(), y.tolist(), strict=True))
    for fn in ("add", "sub", "mul", "min", "max", "div", "rem", "floordiv", "mod"):
        got = run(lambda a, b, fn=fn: prim(fn, a, b), dtype, (dtype, x), (dtype, y), lanes=lanes)
        want = (
            np.array([exact(fn, a, b) % (1 << dtype.bits) for a, b in pairs], np.uint64)
            .astype(f"u{dtype.bytes}")
            .view(NUMPY[dtype])
        )
        np.testing.assert_array_equal(got, want, err_msg=fn)
    for fn, ref in (("lt", np.less), ("ge", np.greater_equal), ("eq", np.equal), ("ne", np.not_equal)):
        got = run(lambda a, b, fn=fn: prim(fn, a, b), DType.BOOL, (dtype, x), (dtype, y), lanes=lanes)
        np.testing.assert_array_equal(got, ref(x, y), err_msg=fn)
    for fn, ref in (("abs", np.abs), ("sign", np.sign), ("neg", np.negative), ("not", np.invert)):
        got = run(lambda a, fn=fn: prim(fn, a), dtype, (dtype, x), lanes=lanes)
        np.testing.assert_array_equal(got, ref(x), err_msg=fn)
    shifts = np.tile(np.arange(14), 14).astype(NUMPY[dtype]) % dtype.bits
    for fn, ref in (("shl", np.left_shift), ("shr", np.right_shift)):
        got = run(lambda a, b, fn=fn: prim(fn, a, b), dtype, (dtype, x), (dtype, shifts), lanes=lanes)
        np.testing.assert_array_equal(got, ref(x, shifts), err_msg=fn)


@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.parametrize("dtype", FLOATS)
def test_primitives_of_floats_are_those_of_numpy(dtype: DType, lanes: int) -> None:
    """NaN passes min and max in either place; comparisons with it are false."""
    x, y = (v.ravel() for v in np.meshgrid(edges(dtype), edges(dtype)))
    binary = {
        "add": np.add,
        "sub": np.subtract,
        "mul": np.multiply,
        "div": np.divide,
        "min": np.minimum,
        "max": np.maximum,
        "mod": np.mod,
        "rem": np.fmod,
    }
    with np.errstate(all="ignore"):
        for fn, ref in binary.items():
            got = run(lambda a, b, fn=fn: prim(fn, a, b), dtype, (dtype, x), (dtype, y), lanes=lanes)
            np.testing.assert_array_equal(got, ref(x, y), err_msg=fn)
        for fn, ref in {"lt": np.less, "le": np.less_equal, "eq": np.equal, "ne": np.not_equal}.items():
            got = run(lambda a, b, fn=fn: prim(fn, a, b), DType.BOOL, (dtype, x), (dtype, y), lanes=lanes)
            np.testing.assert_array_equal(got, ref(x, y), err_msg=fn)
        half = np.array([0.5, 1.5, 2.5, -0.5, -2.5, 0.49999997, 8388609.0, -0.2] * 2)
        away = np.sign(half) * np.floor(np.abs(half) + 0.5)
        away[[5, 13]] = 0
        for fn, want in {
            "floor": np.floor(half),
            "ceil": np.ceil(half),
            "trunc": np.trunc(half),
            "round_even": np.rint(half),
            "round_away": away,
        }.items():
            np.testing.assert_array_equal(
                run(lambda a, fn=fn: prim(fn, a), dtype, (dtype, half), lanes=lanes), want, err_msg=fn
            )
        for fn, ref in {"sqrt": np.sqrt, "abs": np.abs, "sign": np.sign, "neg": np.negative}.items():
            np.testing.assert_array_equal(
                run(lambda a, fn=fn: prim(fn, a), dtype, (dtype, x), lanes=lanes), ref(x), err_msg=fn
            )
        relu = run(lambda a: prim("max", a, 0.0), dtype, (dtype, x), lanes=lanes)
        np.testing.assert_array_equal(relu, np.maximum(x, 0))


def test_booleans_and_choices() -> None:
    x, y = np.array([0, 0, 1, 1] * 3, "?"), np.array([0, 1, 0, 1] * 3, "?")
    for fn, ref in {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}.items():
        np.testing.assert_array_equal(
            run(lambda a, b, fn=fn: prim(fn, a, b), DType.BOOL, (DType.BOOL, x), (DType.BOOL, y)), ref(x, y)
        )
    chosen = run(
        lambda c, a: select(prim("not", c), a, prim("neg", a)), DType.F32, (DType.BOOL, x), (DType.F32, np.arange(12))
    )
    np.testing.assert_array_equal(chosen, np.where(x, -np.arange(12.0), np.arange(12.0)))


@pytest.mark.parametrize(
    ("dtype", "lanes"),
    [
        (t, (None, ("k", 4), ("i", 4))[n % 3])
        for n, t in enumerate((*INTEGERS, *FLOATS, DType.F16, DType.BF16, DType.BOOL))
    ]
    + [(t, lanes) for t in (DType.F32, DType.I32) for lanes in (None, ("k", 4), ("i", 4))],
)
def test_reductions_of_each_type_are_those_of_numpy(dtype: DType, lanes: tuple[str, int] | None) -> None:
    data = np.random.default_rng(1).integers(0, 2 if dtype is DType.BOOL else 4, (6, 11)).astype(NUMPY[dtype])
    i, k, x = Var("i", 6), Var("k", 11), dense("x", 6, 11, dtype=dtype)
    y = dense("y", 6, dtype=dtype)
    kinds = {"max": np.max, "min": np.min}
    if not dtype.is_float:
        kinds |= {"and": np.bitwise_and.reduce, "or": np.bitwise_or.reduce}
    if dtype is not DType.BOOL:
        kinds |= {"add": np.sum}
    for fn, ref in kinds.items():
        value: Expr = Reduce(fn, (k,), x[i, k])
        kernel = apply("k", Definition(y, (i,), value), Schedule(lanes=lanes), (x, y))
        out = aligned(np.zeros(6, NUMPY[dtype]))
        compiled(kernel)(aligned(data), out)
        np.testing.assert_array_equal(out, ref(data, axis=1).astype(NUMPY[dtype]), err_msg=fn)


def test_identity_is_the_limit_of_the_type() -> None:
    assert identity("max", DType.I8) == Const(-128, DType.I8)
    assert identity("min", DType.U16) == Const(65535, DType.U16)
    assert identity("max", DType.F32) == Const(float("-inf"), DType.F32)


def test_indices_are_numbers() -> None:
    """Coordinates as values, quotients and negative numbers included."""
    n = 37
    i, y = Var("i", n), dense("y", n, dtype=DType.I64)
    cases = {
        "line": (i * 3 - 40, np.arange(n) * 3 - 40),
        "floor": ((i - 20) // 3, (np.arange(n) - 20) // 3),
        "rest": ((i - 20) % 7, (np.arange(n) - 20) % 7),
        "most": (prim("min", i, 30) * 2, np.minimum(np.arange(n), 30) * 2),
    }
    for name, (value, want) in cases.items():
        for lanes in (1, 8):
            kernel = apply("k", Definition(y, (i,), value), Schedule(lanes=("i", lanes)), (y,))
            out = aligned(np.zeros(n, "i8"))
            compiled(kernel)(out)
            np.testing.assert_array_equal(out, want, err_msg=name)


def test_quotients_of_negative_indices_round_down() -> None:
    i, j, x, y = Var("i", 9), Var("j", 4), dense("x", 4, 4), dense("y", 9, 4)
    row = prim("max", (7 - i) // 2, 0)
    out, data = aligned(np.zeros((9, 4), "f4")), aligned(np.arange(16, dtype="f4").reshape(4, 4))
    compiled(apply("k", Definition(y, (i, j), x[row, j]), Schedule(lanes=("j", 4)), (x, y)))(data, out)
    np.testing.assert_array_equal(out, data[np.maximum((7 - np.arange(9)) // 2, 0)])


def test_reversed_and_strided() -> None:
    n = 21
    i, x, y = Var("i", n), dense("x", n), dense("y", 2 * n)
    work = Definition(y, (i,), Load(x, (n - 1 - i,)), (2 * i,))
    out, data = aligned(np.zeros(2 * n, "f4")), np.arange(n, dtype="f4")
    compiled(apply("k", work, Schedule(lanes=("i", 8)), (x, y)))(aligned(data), out)
    np.testing.assert_array_equal(out[::2], data[::-1])


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("target", ["native", "x86-64-v2", "x86-64-v3"])
def test_remainders_of_floats_are_exact(lanes: int, target: str) -> None:
    """Exact below quotients of 2^52, or 2^29 without fused multiply-adds; near multiples the rounded one is too far."""
    rng = np.random.default_rng(5)
    b = np.ldexp(rng.uniform(-1, 1, 4000), rng.integers(-140, 60, 4000)).astype("f4")
    steps = np.floor(np.ldexp(rng.uniform(1, 2, 4000), rng.integers(0, 24, 4000)))
    near = (b * steps).astype("f4")
    limit = 29 if target == "x86-64-v2" else 52
    far = np.ldexp(rng.uniform(-1, 1, 4000), rng.integers(-4, limit, 4000)).astype("f4") * b
    few = np.array([1e-45, -1e-38, 3e38, 1e-40], "f4"), np.array([np.inf, 3e-39, 2e38, 3e-42], "f4")
    x = np.concatenate([near, np.nextafter(near, np.float32(0)), np.nextafter(near, -near), far, few[0]])
    y = np.concatenate([b, b, b, b, few[1]])
    keep = (y != 0) & np.isfinite(x)
    x, y = x[keep], y[keep]
    got = run(lambda a, b: prim("rem", a, b), DType.F32, (DType.F32, x), (DType.F32, y), lanes=lanes, target=target)
    np.testing.assert_array_equal(got, np.fmod(x, y))
