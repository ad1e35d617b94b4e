"""Small programs with known results, written by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from aot.codegen.ir.loops import Const, Expr, For, If, Kernel, LoopKind, Store, Var, dense, prim
from aot.codegen.ir.program import (
    Address,
    Bind,
    Call,
    Check,
    ConstantBlock,
    DataDependentSize,
    Jump,
    Label,
    Let,
    MemoryRegion,
    Program,
    SizeConstraint,
    Tensor,
)
from aot.codegen.llvm.build import Built, build
from aot.codegen.llvm.host import parse_target
from aot.runtime.abi import DType

LARGE = 10**9  # work that is worth any number of chunks


def scale_kernel(name: str, n: int | Var) -> Kernel:
    """y[i] = x[i] * w[0], a unit an element."""
    x, w, y = dense("x", n), dense("w", 1), dense("y", n)
    i = Var("i", n)
    sizes = () if isinstance(n, int) else (n,)
    return Kernel(name, sizes, (x, w, y), (For(i, (Store(y, (i,), x[i] * w[0]),), LoopKind.PARALLEL),))


def chain(n: int = 1000, calls: int = 2, factor: float = 2.0) -> Program:
    """y = x * factor**calls through buffers of the arena; the kernels are equal and differ by name."""
    pitch = (4 * n + 63) // 64 * 64
    between = [Address(MemoryRegion.ARENA, 0, pitch * (i % 2)) for i in range(calls - 1)]
    weight = Address(MemoryRegion.CONSTANT, 0, 64)
    places = [Address(MemoryRegion.INPUT), *between, Address(MemoryRegion.OUTPUT)]
    return Program(
        "chain net",
        (),
        tuple(scale_kernel(f"k{i}", n) for i in range(calls)),
        tuple(
            Call(f"k{i}", (places[i], weight, places[i + 1]), (), (f"layer{i}",), LARGE, LARGE) for i in range(calls)
        ),
        (ConstantBlock(64, np.array([factor], np.float32)),),
        128,
        2 * pitch,
        (Tensor("x", ("x", "in"), DType.F32, (n,)),),
        (Tensor("y", ("y",), DType.F32, (n,)),),
    )


def varying() -> Program:
    """y[2 * n] = [x * 3, x * 3] for n in 1..4096, through the arena."""
    n = Var("n", 4097, 1)
    scale, out = scale_kernel("scale", n), dense("y", 2 * n)
    x, i = dense("x", n), Var("i", 2 * n)
    j: Expr = i % n
    repeat = Kernel("repeat", (n,), (x, out), (For(i, (Store(out, (i,), x[j]),), LoopKind.PARALLEL),))
    offset = (n * 4 + 63) // 64 * 64
    between = Address(MemoryRegion.ARENA, 0, offset)
    return Program(
        "varying",
        (n,),
        (scale, repeat),
        (
            Call("scale", (Address(MemoryRegion.INPUT), Address(MemoryRegion.CONSTANT), between), (n,), ("a",)),
            Call("repeat", (between, Address(MemoryRegion.OUTPUT)), (n,), ("b",), 2 * n, 12 * n),
        ),
        (ConstantBlock(0, np.array([3.0], np.float32)),),
        64,
        offset * 2,
        (Tensor("x", ("x",), DType.F32, (n,)), Tensor("z", ("z",), DType.F32, (n, 4))),
        (Tensor("y", ("y",), DType.F32, (2 * n,)),),
    )


def running_sum() -> Program:
    """y = state + x; state = y."""
    x, s, y, i = dense("x", 8), dense("s", 8), dense("y", 8), Var("i", 8)
    add = Kernel("add", (), (x, s, y), (For(i, (Store(y, (i,), x[i] + s[i]),), LoopKind.PARALLEL),))
    copy = Kernel("copy", (), (x, y), (For(i, (Store(y, (i,), x[i]),), LoopKind.PARALLEL),))
    state, out = Address(MemoryRegion.STATE, 0, 64), Address(MemoryRegion.OUTPUT)
    return Program(
        "running sum",
        (),
        (add, copy),
        (
            Call("add", (Address(MemoryRegion.INPUT), state, out), (), ("add",)),
            Call("copy", (out, state), (), ("save",)),
        ),
        (),
        0,
        0,
        (Tensor("x", ("x",), DType.F32, (8,)),),
        (Tensor("y", ("y",), DType.F32, (8,)),),
        state_bytes=96,
    )


def positives(initial: int = 4) -> Program:
    """y = the elements of x that are more than 0; the arena has room for so many of them at first."""
    n, v, c = Var("n", None, 1), Var("v"), Var("v.most")
    x, kept, count = dense("x", n), dense("kept", n), dense("count", 1, dtype=DType.I64)
    y = replace(dense("y", v), align=4)
    i, j = Var("i", n), Var("j", v)
    at = count[0]
    found = If(prim("gt", x[i], 0.0), (Store(kept, (at,), x[i]), Store(count, (Const(0),), at + 1)))
    select = Kernel("select", (n,), (x, kept, count), (Store(count, (Const(0),), Const(0)), For(i, (found,))))
    middle = dense("middle", v)
    half = Kernel("half", (v,), (kept, middle), (For(j, (Store(middle, (j,), kept[j] * 0.5),), LoopKind.PARALLEL),))
    twice = Kernel("twice", (v,), (middle, y), (For(j, (Store(y, (j,), middle[j] * 2.0),), LoopKind.PARALLEL),))
    counted, held, middled = (
        Address(MemoryRegion.ARENA),
        Address(MemoryRegion.ARENA, 0, 64),
        Address(MemoryRegion.ARENA, 0, 64 + 4 * n),
    )
    return Program(
        "positives",
        (n,),
        (select, half, twice),
        (
            Call("select", (Address(MemoryRegion.INPUT), held, counted), (n,), ("select",)),
            Call("half", (held, middled), (v,), ("half",), LARGE * v, 8 * v),
            Call("twice", (middled, Address(MemoryRegion.OUTPUT)), (v,), ("twice",), LARGE * v, 8 * v),
        ),
        (),
        0,
        128 + 4 * n + 4 * c,
        (Tensor("x", ("x",), DType.F32, (n,)),),
        (Tensor("y", ("y",), DType.F32, (v,), n),),
        late=(DataDependentSize(v, c, initial),),
        control=(
            Bind(1, v, counted, DType.I64),
            Check(1, SizeConstraint(prim("min", v, 100), v, "Select 'select': at most 100 elements are kept, got v")),
        ),
    )


def powers() -> Program:
    """y = x * 2**k, a loop of k rounds."""
    x, k, y, i = dense("x", 8), Var("k"), dense("y", 8), Var("i", 8)
    copy = Kernel("copy", (), (x, y), (For(i, (Store(y, (i,), x[i]),), LoopKind.PARALLEL),))
    double = Kernel("double", (), (y,), (For(i, (Store(y, (i,), y[i] * 2.0),), LoopKind.PARALLEL),))
    turn, out = Var("turn"), Address(MemoryRegion.OUTPUT)
    return Program(
        "powers",
        (),
        (copy, double),
        (
            Call("copy", (Address(MemoryRegion.INPUT), out), (), ("copy",)),
            Call("double", (out,), (), ("double",)),
        ),
        (),
        0,
        0,
        (Tensor("x", ("x",), DType.F32, (8,)), Tensor("k", ("k",), DType.I32, ())),
        (Tensor("y", ("y",), DType.F32, (8,)),),
        late=(DataDependentSize(k), DataDependentSize(turn)),
        control=(
            Bind(1, k, Address(MemoryRegion.INPUT, 1), DType.I32),
            Let(1, turn, 0),
            Label(1, "head"),
            Jump(1, "end", prim("ge", turn, k)),
            Let(2, turn, turn + 1),
            Jump(2, "head"),
            Label(2, "end"),
        ),
    )


def built(program: Program) -> Built:
    return build(program, parse_target("native"))
