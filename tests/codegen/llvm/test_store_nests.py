"""Unrolled loops of stores are emitted at once: the text is that of walking through every iteration."""

from __future__ import annotations

import random

import pytest

from aot.codegen.ir.loops import (
    Alloc,
    Buffer,
    Const,
    Expr,
    For,
    Kernel,
    LoopKind,
    Prim,
    Size,
    Space,
    Stmt,
    Store,
    Var,
    dense,
)
from aot.codegen.llvm.emit.kernel import emit
from aot.codegen.llvm.emit.store_nests import StoreNests
from aot.codegen.llvm.emit.unrolled_stores import Nest, UnrolledStores
from aot.codegen.target import Target
from aot.runtime.abi import DType

TARGETS = ("x86-64-v3", "aarch64-v8.2")  # the second one multiplies by a lane of a vector, and sums f16
DTYPES = (DType.F32, DType.F32, DType.F64, DType.F16, DType.BF16, DType.I32)
NUMBERS = (0.0, 0.0, -0.0, 1.0, -1.0, 0.5, 2.0)
STEP = Var("t", 7)


def text(kernel: Kernel, target: str) -> str:
    function = emit(kernel, target=Target.parse(target))
    return "\n".join([*function.globals, *sorted(function.declarations), function.text()])


def texts(kernel: Kernel, target: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the text as it is made, that of stores one by one, and that of loops that are walked through."""
    found = [text(kernel, target)]
    for cls, name, none in ((StoreNests, "emit", False), (UnrolledStores, "find", None)):
        with monkeypatch.context() as patched:
            patched.setattr(cls, name, lambda *_, none=none: none)
            found.append(text(kernel, target))
    return found


def unrolled(stmt: Stmt, lanes: int, *axes: Var) -> Stmt:
    """Put unrolled loops around a statement, the innermost one of vectors if there are lanes."""
    for var in reversed(axes):
        is_vector = lanes > 1 and var is axes[-1]
        stmt = For(var, (stmt,), LoopKind.VECTOR, lanes) if is_vector else For(var, (stmt,), LoopKind.UNROLLED)
    return stmt


def tile(r: random.Random) -> Kernel:
    """Draw a loop over a tile of registers: their first values, sums of products, results."""
    dtype, lanes = r.choice(DTYPES), r.choice((1, 4, 8))
    rows, terms, columns = r.randint(1, 5), r.randint(1, 4), r.randint(1, 21)
    p, q, c = Var("p", rows), Var("q", terms), Var("c", columns)

    def buffer(name: str, *shape: Size, space: Space = Space.ARG) -> Buffer:
        values = tuple(r.choices(NUMBERS, k=rows * terms)) if space is Space.TABLE else ()
        return dense(name, *shape, dtype=dtype, space=space, values=values)

    table = buffer("table", rows, terms, space=Space.TABLE)
    acc, kept = (buffer(n, k, columns, space=Space.REGISTERS) for n, k in (("acc", rows), ("kept", terms)))
    x, w, y = buffer("x", 7, rows, terms), buffer("w", 7, terms, columns), buffer("y", 7, rows, columns)
    far = buffer("far", 7 * rows + 9, terms)
    folded: Expr = Prim("floordiv", (p * 3 + STEP, Const(2)), DType.I64)
    factor = r.choice((table[p, q], table[p, q], x[STEP, p, q], far[folded, q], w[STEP, q, c], kept[q, c]))
    other = r.choice((w[STEP, q, c], kept[q, c], x[STEP, p, q]))
    begin = r.choice((Const(0, dtype.compute), Const(1, dtype.compute), y[STEP, p, c], w[STEP, 0, c], x[STEP, p, 0]))
    order = r.choice(((p, q, c), (q, p, c)))
    sums = Alloc(
        acc,
        (
            unrolled(Store(acc, (p, c), begin), lanes, p, c),
            unrolled(Store(acc, (p, c), factor * other, "add"), lanes, *order),
            unrolled(Store(y, (STEP, p, c), acc[p, c]), lanes, p, c),
        ),
    )
    return Kernel(
        "k",
        (),
        (x, w, y, far),
        (For(STEP, (Alloc(kept, (unrolled(Store(kept, (q, c), w[STEP, q, c]), lanes, q, c), sums)),)),),
    )


@pytest.mark.parametrize("target", TARGETS)
def test_sums_of_products_and_copies(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    emitted: list[bool] = []
    emit_nest = StoreNests.emit

    def noted(self: StoreNests, nest: Nest, indices: list[int], is_normal: bool) -> bool:
        emitted.append(emit_nest(self, nest, indices, is_normal))
        return emitted[-1]

    monkeypatch.setattr(StoreNests, "emit", noted)
    for seed in range(40):
        at_once, one_by_one, walked = texts(tile(random.Random(seed)), target, monkeypatch)
        assert at_once == one_by_one, seed
        assert at_once == walked, seed
    assert sum(emitted) > len(emitted) // 2 and not all(emitted)
