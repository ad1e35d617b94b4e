"""Thunks, which call kernels: one for all calls whose arguments lie in the same kinds of memory, as in most layers.

@calls[17] -> @call_3(request, begin, end, scratch, 17) -> @kernels_3[@rows[17]](%x, %w, %y, sizes, begin, end, scratch)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from aot.codegen.ir.loops import Size, Var
from aot.codegen.ir.program import Address, Call, Program
from aot.codegen.llvm.driver.places import address
from aot.codegen.llvm.driver.plan import traversals
from aot.codegen.llvm.driver.shape_functions import function_text, static, symbol_code
from aot.codegen.llvm.driver.size_code import SizeCode
from aot.codegen.machines import FlushMode


def thunks(program: Program, functions: Mapping[str, str], tag: str, flush: FlushMode | None = None) -> list[str]:
    """Return the thunks and the tables of calls; `functions` maps names of kernels to their functions' names.

    `flush`: how calls that flush denormal operands and results to zero do so; None if no call does.
    """
    groups: dict[tuple[object, ...], list[int]] = {}
    for i, call in enumerate(program.calls):
        operands = tuple((p.region, p.index, _form(p.offset)) for p in call.args)
        groups.setdefault((call.sizes, call.flushes, operands), []).append(i)
    thunk_of, row_of = dict[int, int](), dict[int, int]()
    texts: list[str] = []
    for number, members in enumerate(groups.values()):
        calls = [program.calls[i] for i in members]
        texts += _thunk(number, calls, [functions[call.kernel] for call in calls], program, tag, flush)
        thunk_of |= dict.fromkeys(members, number)
        row_of |= {i: row for row, i in enumerate(members)}
    count = len(program.calls)
    return [
        *texts,
        _table("calls", "ptr", [f"@call_{thunk_of[i]}" for i in range(count)], "hidden"),
        _table("rows", "i32", [row_of[i] for i in range(count)]),
        # the symbol keeps its older name, since libraries hold it: their bytes stay equal
        _table("swings", "i8", traversals(program), "hidden"),
    ]


def _form(offset: Size) -> object:
    """Return the kind of an offset: one thunk can read offsets of equal kind from a table."""
    return int if isinstance(offset, int) else Var if isinstance(offset, Var) else offset


def _thunk(
    number: int, calls: Sequence[Call], kernels: Sequence[str], program: Program, tag: str, flush: FlushMode | None
) -> list[str]:
    """Return @call_<number>: the kernel and the addresses of one of the calls, and the sizes that they share."""
    first, function = calls[0], f"@{kernels[0]}"
    varying = [k for k, p in enumerate(first.args) if any(c.args[k].offset != p.offset for c in calls[1:])]
    fixed = tuple(p.offset for k, p in enumerate(first.args) if k not in varying)
    code = symbol_code(program, first.sizes + fixed)
    code.lines[:0] = [
        "%symbols.at = getelementptr %request, ptr %request, i64 0, i32 2",
        "%symbols = load ptr, ptr %symbols.at, align 8",
    ]
    addresses, tables = list(first.args), list[str]()
    several = len(set(kernels)) > 1
    if several or varying:
        code.lines += [
            "%row.at = getelementptr i32, ptr @rows, i64 %index",
            "%row.short = load i32, ptr %row.at, align 4",
            "%row = zext i32 %row.short to i64",
        ]
    if several:
        tables.append(_table(f"kernels_{number}", "ptr", [f"@{kernel}" for kernel in kernels]))
        code.lines += [
            f"%kernel.at = getelementptr ptr, ptr @kernels_{number}, i64 %row",
            "%kernel = load ptr, ptr %kernel.at, align 8",
        ]
        function = "%kernel"
    if varying:
        tables.append(
            _table(f"words_{number}", "i64", [_word(c.args[k].offset, program) for c in calls for k in varying])
        )
        for k, place in _read_places(number, first.args, varying, code).items():
            addresses[k] = place
    args = [f"ptr {address(f'a{k}', place, code, tag)}" for k, place in enumerate(addresses)]
    args += [f"i64 {code.operand(size)}" for size in first.sizes]
    args += ["i64 %begin", "i64 %end", "ptr %scratch"]
    # a kernel is large and takes long to optimise: inlined, it would be optimised once for each thunk
    run = f"call void {function}({', '.join(args)}) noinline"
    code.lines += [*flush.begin, run, *flush.end] if first.flushes and flush is not None else [run]
    taken = "ptr %request, i64 %begin, i64 %end, ptr %scratch, i64 %index"
    return [*tables, function_text(f"define internal void @call_{number}({taken}) nounwind {{", code.lines, "ret void")]


def _table(name: str, kind: str, entries: Sequence[object], linkage: str = "internal") -> str:
    """Return a table of values of one kind."""
    return (
        f"@{name} = {linkage} constant [{len(entries)} x {kind}] [{', '.join(f'{kind} {entry}' for entry in entries)}]"
    )


def _word(offset: Size, program: Program) -> int:
    """Return a word of a thunk's table: a number, or the place of a symbol."""
    return program.places[offset.name] if isinstance(offset, Var) else static(offset)


def _read_places(
    number: int, operands: Sequence[Address], varying: Sequence[int], code: SizeCode
) -> dict[int, Address]:
    """Read the offsets that vary from row `%row` of the thunk's table; return the places by argument."""
    addresses: dict[int, Address] = {}
    for column, k in enumerate(varying):
        code.lines += [
            f"%w{k}.at = getelementptr [{len(varying)} x i64], ptr @words_{number}, i64 %row, i64 {column}",
            f"%w{k} = load i64, ptr %w{k}.at, align 8",
        ]
        offset = f"%w{k}"
        if isinstance(operands[k].offset, Var):
            code.lines += [
                f"%o{k}.at = getelementptr i64, ptr %symbols, i64 %w{k}",
                f"%o{k} = load i64, ptr %o{k}.at, align 8",
            ]
            offset = f"%o{k}"
        code.values[offset] = offset
        addresses[k] = replace(operands[k], offset=Var(offset))
    return addresses
