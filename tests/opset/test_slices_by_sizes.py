"""Slices whose bounds are expressions of varying sizes mean what Python's slices mean, whatever sign a bound has."""

from __future__ import annotations

import itertools

import numpy as np
import onnx
import pytest

import aot
from aot.codegen.ir.expressions import rewrite
from aot.codegen.ir.loops import Const, Expr, Var, prim
from aot.ir.types import Dim
from aot.opset.movement.slicing import range_of
from aot.runtime.errors import AotError
from tests.codegen.interpreter import Interpreter

ANY = -(1 << 63)
X = np.arange(1, 13, dtype=np.float32).reshape(3, 4)


def number(size: Dim | None, sizes: dict[Expr, Expr]) -> int | None:
    return int(Interpreter().value(rewrite(size, sizes))) if isinstance(size, Expr) else size


@pytest.mark.parametrize("low", [0, 1, ANY], ids=["from 0", "from 1", "data"])
@pytest.mark.parametrize("step", [1, 2, -1, -3])
def test_range_of_is_pythons_slice(low: int, step: int) -> None:
    n, k = Var("n", None, max(low, 0)), Var("k", None, low)
    bounds: list[Dim | None] = [None, k, -k, k - n, n - k, n // 2, -(n // 2), n - 1, n - 3, prim("min", n, k), 2, -2]
    values = [(a, b) for a in (1, 3, 4) for b in (max(low, -5), 1, 3, 6)] + ([(0, 0), (0, 2)] if low <= 0 else [])
    pairs = itertools.product((n, 5), itertools.permutations(bounds, 2))
    for turn, (size, (one, other)) in enumerate(pairs):
        first, count = range_of(size, one, other, step, "test")
        for a, b in values[turn % 6 :: 6]:
            sizes: dict[Expr, Expr] = {n: Const(a), k: Const(b)}
            extent, at, length = (number(x, sizes) or 0 for x in (size, first, count))
            begin, end = number(one, sizes), number(other, sizes)
            begin = max(begin, -extent) if begin is not None and step < 0 else begin
            expected = range(extent)[begin:end:step]
            assert [at + i * step for i in range(length)] == [*expected], f"{size}[{one}:{other}:{step}], {a}, {b}"


def model(nodes: str, inputs: str = "float[n,4] x, float[k,2] q", output: str = "float[j,4] y") -> bytes:
    constants = "int64[1] zero={0}, int64[1] one={1}, int64[1] big={9223372036854775807}, int64[1] down={-1}"
    sizes = "sx=Shape(x) n=Gather(sx,zero) sq=Shape(q) k=Gather(sq,zero)"
    text = f'<ir_version: 8, opset_import: ["": 17]> m ({inputs}) => ({output}) <{constants}> {{ {sizes} {nodes} }}'
    return onnx.parser.parse_model(text).SerializeToString()


SLICES = {
    "x[-k:]": ("a=Neg(k) b=Identity(big) s=Identity(one)", lambda k: X[-k:]),
    "x[k-n:]": ("a=Sub(k,n) b=Identity(big) s=Identity(one)", lambda k: X[k - 3 :]),
    "x[:-k]": ("a=Identity(zero) b=Neg(k) s=Identity(one)", lambda k: X[:-k]),
    "x[:k]": ("a=Identity(zero) b=Identity(k) s=Identity(one)", lambda k: X[:k]),
    "x[n-k:]": ("a=Sub(n,k) b=Identity(big) s=Identity(one)", lambda k: X[3 - k :]),
    "x[-k::-1]": ("a=Neg(k) m=Neg(big) b=Sub(m,one) s=Identity(down)", lambda k: X[max(-k, -3) :: -1]),
}


@pytest.mark.parametrize("name", SLICES)
def test_compiled_slices_by_sizes(name: str) -> None:
    nodes, expected = SLICES[name]
    compiled = aot.compile_model(model(f"{nodes} y=Slice(x,a,b,zero,s)"))
    for k in (0, 1, 2, 3, 5):
        assert np.array_equal(compiled([X, np.zeros((k, 2), np.float32)])[0], expected(k)), k


def test_a_range_that_ends_before_it_begins_is_empty() -> None:
    compiled = aot.compile_model(model("a=Squeeze(k) b=Squeeze(n) u=Squeeze(one) y=Range(a,b,u)", output="int64[j] y"))
    for k in (1, 3, 5):
        assert np.array_equal(compiled([X, np.zeros((k, 2), np.float32)])[0], np.arange(k, 3)), k


def test_rows_of_a_table_are_no_broadcast() -> None:
    """x[i, j] + table[:n][i, j] has n rows, as many as a table of 2: for more, NumPy's rule is broken."""
    nodes = "t=Slice(q,zero,n,zero) y=Add(x,t)"
    inputs = "float[n,4] x, float[2,4] q"
    compiled = aot.compile_model(model(nodes, inputs))
    q = np.ones((2, 4), np.float32)
    assert np.array_equal(compiled([X[:2], q])[0], X[:2] + 1)
    with pytest.raises(AotError, match=r"Add 'y': dimension 0 of its inputs must be equal, got min\(2,n\) and n"):
        compiled([X, q])
