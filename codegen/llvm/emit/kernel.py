"""Kernel -> LLVM function.

    define internal void @NAME(ptr %buffer..., i64 %size..., i64 %begin, i64 %end, ptr %scratch)

Statements: `aot.codegen.llvm.emit.statements`; expressions: `values`; addresses: `address`; registers: `registers`.
"""

from __future__ import annotations

from aot.codegen.costs import COSTS
from aot.codegen.ir.expressions import walk
from aot.codegen.ir.loops import Kernel, Prim, Stmt, Store, Var
from aot.codegen.ir.numbers.normal_values import normal_buffers
from aot.codegen.ir.numbers.quantized import is_quantized
from aot.codegen.ir.primitives import FUNCTIONS
from aot.codegen.ir.traverse import statements
from aot.codegen.llvm.emit.function_text import Function, Value, local
from aot.codegen.llvm.emit.registers import stored
from aot.codegen.llvm.emit.stacks import Stacks
from aot.codegen.llvm.emit.statements import StatementEmitter
from aot.codegen.llvm.emit.values import Values
from aot.codegen.machines import Abilities
from aot.codegen.target import Target


def emit(
    kernel: Kernel, written: frozenset[str] | None = None, target: Target | None = None, flushes: bool = False
) -> Function:
    """Emit the function of a kernel. A caller passes the kernel's buffers, its sizes, the range of units to run, and
    `Function.scratch_bytes` bytes (over its sizes) of memory of its thread, 64-byte aligned.

    `written` names the buffers that it stores to, by default its stores' targets. Without a target, no instruction is
    used that some targets lack. `flushes`: all callers flush denormal numbers to zero.
    """
    if written is None:
        written = frozenset(stored(kernel.body))
    pointers = {b.name: Value("ptr", local("b", i, b.name)) for i, b in enumerate(kernel.buffers)}
    sizes: dict[Var, Value] = {s: Value("i64", local("s", i, s.name)) for i, s in enumerate(kernel.sizes)}
    params = [
        f"ptr noalias {'' if b.name in written else 'readonly '}align {b.align} {pointers[b.name].name}"
        for b in kernel.buffers
    ]
    params += [*map(str, sizes.values()), "i64 %begin", "i64 %end", "ptr noalias align 64 %scratch"]
    abilities = Abilities() if target is None else target.abilities
    function = Function(kernel.name, params, kernel.sizes, abilities.fuses, abilities.keeps_nan)
    body = function.append("start")
    function.branch(body)
    normal = normal_buffers(kernel.body) if flushes and abilities.rounds_normal else None
    values = Values(function, sizes, pointers, abilities, normal, quantized=is_quantized(kernel.body))
    values.at.carries_pointers = target is None or target.carries_pointers
    values.calls_functions = target is not None and (target.compact_code or _has_many_functions(kernel.body))
    stacks = Stacks(function, kernel.sizes, values.at.size)
    function.block = body
    StatementEmitter(values, stacks).block(kernel.body)
    stacks.finish()
    values.at.end()
    return function


def _has_many_functions(body: tuple[Stmt, ...]) -> bool:
    """True if so many places compute functions such as `exp` that LLVM would take long if all were written out."""
    stores = [s for s in statements(body) if isinstance(s, Store)]
    values = dict.fromkeys(s.value for s in stores if isinstance(s.value, Prim))
    functions = {e for e in walk(*values) if isinstance(e, Prim) and e.fn in FUNCTIONS}
    return len(functions) > COSTS.max_written_functions
