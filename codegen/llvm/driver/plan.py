"""The plan of a request: the units of each call, and the number of pieces that it is worth cutting into."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache

from aot.codegen.costs import COSTS
from aot.codegen.ir.expressions import rewrite
from aot.codegen.ir.loops import Const, Expr, Size, Var, prim
from aot.codegen.ir.program import MemoryRegion, Program
from aot.codegen.llvm.driver.shape_functions import as_expr, function_text, static, symbol_code
from aot.codegen.nest.scheduled_kernel import facts_of
from aot.runtime import abi

Rows = list[tuple[Size, Size]]

# row @plan.rows[i] of the distinct ones for each call i
_COPY = """\
br label %next
next:
%i = phi i64 [ 0, %entry ], [ %i.next, %next ]
%number.at = getelementptr i32, ptr @plan.rows, i64 %i
%number.short = load i32, ptr %number.at, align 4
%number = zext i32 %number.short to i64
%from = getelementptr [2 x i64], ptr %distinct, i64 %number
%row = load <2 x i64>, ptr %from, align 8
%to = getelementptr [2 x i64], ptr %area, i64 %i
store <2 x i64> %row, ptr %to, align 8
%i.next = add i64 %i, 1
%more = icmp ult i64 %i.next, {calls}
br i1 %more, label %next, label %done
done:"""


def plan_rows(program: Program) -> Rows:
    """Return the units and the pieces of each call."""
    kernels = {k.name: (facts_of(k).units, k.sizes) for k in program.kernels}
    return [(_units(*kernels[c.kernel], c.sizes), _pieces(c.work, c.traffic)) for c in program.calls]


@lru_cache(maxsize=1 << 14)  # each part of a module needs all calls
def _units(units: Size, sizes: tuple[Var, ...], values: tuple[Size, ...]) -> Size:
    """Return the units of a call. `values`: of the kernel's `sizes`."""
    if isinstance(units, int):
        return units
    known: dict[Expr, Expr] = {size: as_expr(value) for size, value in zip(sizes, values, strict=True)}
    return rewrite(units, known)


def plan_bytes(program: Program) -> int:
    """Return the bytes of the plan of a request; 0 if it is a constant."""
    return 0 if _constant(plan_rows(program)) else 16 * len(program.calls)


def plan_function(program: Program) -> str:
    """Return @make_plan, which computes the rows; they are a constant if no size is dynamic."""
    head = "define internal ptr @make_plan(ptr %symbols, ptr %area) nounwind {"
    rows = plan_rows(program)
    if _constant(rows):
        entries = ", ".join(f"[2 x i64] [i64 {static(u)}, i64 {static(p)}]" for u, p in rows)
        table = f"@plan = internal constant [{len(rows)} x [2 x i64]] [{entries}]"
        return table + "\n" + function_text(head, [], "ret ptr @plan")
    distinct = {row: n for n, row in enumerate(dict.fromkeys(rows))}  # equal layers have equal rows
    code = symbol_code(program, [size for row in distinct for size in row])
    code.lines[:0] = ["entry:", f"%distinct = alloca [{2 * len(distinct)} x i64], align 8"]
    for i, size in enumerate(size for row in distinct for size in row):
        value = code.operand(size)
        code.lines.append(f"%p{i} = getelementptr i64, ptr %distinct, i64 {i}")
        code.lines.append(f"store i64 {value}, ptr %p{i}, align 8")
    numbers = ", ".join(f"i32 {distinct[row]}" for row in rows)
    table = f"@plan.rows = internal constant [{len(rows)} x i32] [{numbers}]"
    code.lines += _COPY.format(calls=len(rows)).splitlines()
    return table + "\n" + function_text(head, code.lines, "ret ptr %area")


def _constant(rows: Rows) -> bool:
    return all(isinstance(size, int | Const) for row in rows for size in row)


@lru_cache(maxsize=1 << 14)
def _pieces(work: Size, traffic: Size) -> Size:
    """Return the number of chunks that pays for a call, by its work and traffic; the most if the work is unknown."""
    if isinstance(work, int) and isinstance(traffic, int):
        if not work and not traffic:
            return abi.MAX_THREADS * COSTS.max_thread_chunks * COSTS.fine_chunk
        return max(1, work // COSTS.chunk_work, traffic // COSTS.chunk_traffic)
    return prim("max", prim("max", as_expr(work) // COSTS.chunk_work, as_expr(traffic) // COSTS.chunk_traffic), 1)


def traversals(program: Program) -> list[int]:
    """Return the traversal order of large weights for each call: 2 alternates, 3 is every other call over them, else 0.

    Kernels that prefetch the next panel always get 0: they know one direction. So do kernels whose prefetching depends
    on the units of a call, since backwards each unit is a call of its own, unless the weights are used repeatedly.
    """
    sizes: dict[Size, int] = {block.offset: block.nbytes for block in program.constants}
    facts = {k.name: facts_of(k) for k in program.kernels}
    before: dict[Size, int] = {}
    weights = [[p.offset for p in call.args if p.region is MemoryRegion.CONSTANT] for call in program.calls]
    largest_of = [max(w, key=lambda offset: sizes.get(offset, 0), default=None) for w in weights]
    times = Counter(largest_of)
    orders: list[int] = []
    for call, largest in zip(program.calls, largest_of, strict=True):
        once = times[largest] == 1 and not program.control
        no = facts[call.kernel].one_way or (facts[call.kernel].counting and once)
        if largest is None or no or sizes.get(largest, 0) < COSTS.alternating_bytes:
            orders.append(0)
            continue
        orders.append(2 + before.get(largest, 0) % 2)
        before[largest] = before.get(largest, 0) + 1
    return orders
