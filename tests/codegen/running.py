"""Compile one kernel into this process and call it on numpy arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import llvmlite.binding as llvm
import numpy as np
import pytest
from numpy.typing import NDArray

from aot.codegen.ir.expressions import rewrite
from aot.codegen.ir.index import decide, normal
from aot.codegen.ir.loops import Const, Expr, Kernel, Prim, Size, Var
from aot.codegen.llvm.emit.function_text import Function, global_name
from aot.codegen.llvm.emit.kernel import emit
from aot.codegen.llvm.host import parse_target
from aot.codegen.llvm.object.optimize import compile_module
from aot.codegen.nest.nest import units
from aot.codegen.target import Target

Array = NDArray[np.generic]
reason = "this machine has no instruction for products of bytes"
runs_dots = pytest.mark.skipif(parse_target("native").abilities.dots != 4, reason=reason)


def module_text(function: Function, kernel: Kernel) -> str:
    """The function and an exported `run` that passes its arguments on."""
    kinds = ["ptr"] * len(kernel.buffers) + ["i64"] * (len(kernel.sizes) + 2) + ["ptr"]
    params = ", ".join(f"{k} %a{i}" for i, k in enumerate(kinds))
    wrapper = f"define void @run({params}) {{\n  call void {global_name(kernel.name)}({params})\n  ret void\n}}\n"
    return "\n".join([*function.globals, function.text(), wrapper, *sorted(function.declarations)])


def aligned(array: Array) -> Array:
    """A copy at a 64-byte boundary, with room behind it."""
    raw = np.empty(array.nbytes + 128, np.uint8)
    start = -raw.ctypes.data % 64
    out = raw[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    out[...] = array
    return out


def compiled(kernel: Kernel, target: Target | None = None, level: int | None = None) -> Callable[..., None]:
    """`call(*arrays, *sizes, begin=, end=)`; arrays are written in place and must be aligned and contiguous."""
    target = target or parse_target("native")
    function = emit(kernel, target=target)
    code = compile_module(module_text(function, kernel), target, level)
    return load(code, function, kernel)


def load(code: bytes, function: Function, kernel: Kernel) -> Callable[..., None]:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    buffers, sizes = len(kernel.buffers), len(kernel.sizes)
    kinds = [ctypes.c_void_p] * buffers + [ctypes.c_int64] * (sizes + 2) + [ctypes.c_void_p]
    entry = ctypes.CFUNCTYPE(None, *kinds)(engine.get_function_address("run"))
    total = units(kernel)

    def call(*args: Array | int, begin: int = 0, end: int | None = None) -> None:
        pointers = [a.ctypes.data for a in args[:buffers] if isinstance(a, np.ndarray)]
        values = [int(s) for s in args[buffers:]]  # type: ignore[arg-type]
        last = end if end is not None else evaluated(total, kernel, values)
        scratch = aligned(np.zeros(max(64, evaluated(function.scratch_bytes, kernel, values)), np.uint8))
        entry(*pointers, *values, begin, last, scratch.ctypes.data)

    call.engine = engine  # type: ignore[attr-defined]
    return call


def evaluated(size: Size, kernel: Kernel, values: list[int]) -> int:
    """A size over the kernel's symbols as a number."""
    if isinstance(size, int):
        return size
    return number(size, dict(zip(kernel.sizes, values, strict=True)))


def number(e: Expr, env: dict[Var, int]) -> int:
    """Return the value of an index for these values of its variables."""

    def chosen(e: Expr) -> Expr | None:
        match e:
            case Prim("select", (c, a, b)):
                return rewrite(a if decide(rewrite(c, chosen), {}) else b, chosen)
            case _:
                return None

    found = normal(rewrite(rewrite(e, {v: Const(n) for v, n in env.items()}), chosen), {})
    assert found.is_const
    return found.const
