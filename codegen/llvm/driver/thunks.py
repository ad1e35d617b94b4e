"""Thunks, which call kernels: one for all calls that differ in addresses alone, as those of equal layers do.

@calls[17] -> @call_3(request, begin, end, scratch, 17) -> @k3(%x, %w, %y, sizes, begin, end, scratch)
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
        groups.setdefault((functions[call.kernel], call.sizes, call.flushes, operands), []).append(i)
    thunk_of, row_of = dict[int, int](), dict[int, int]()
    texts: list[str] = []
    for number, members in enumerate(groups.values()):
        calls = [program.calls[i] for i in members]
        texts += _thunk(number, calls, functions[calls[0].kernel], program, tag, flush)
        thunk_of |= dict.fromkeys(members, number)
        row_of |= {i: row for row, i in enumerate(members)}
    count = len(program.calls)
    entries = ", ".join(f"ptr @call_{thunk_of[i]}" for i in range(count))
    rows = ", ".join(f"i32 {row_of[i]}" for i in range(count))
    ways = ", ".join(f"i8 {traversal}" for traversal in traversals(program))
    return [
        *texts,
        f"@calls = hidden constant [{count} x ptr] [{entries}]",
        f"@rows = internal constant [{count} x i32] [{rows}]",
        # the symbol keeps its older name, since libraries hold it: their bytes stay equal
        f"@swings = hidden constant [{count} x i8] [{ways}]",
    ]


def _form(offset: Size) -> object:
    """Return the kind of an offset: one thunk can read offsets of equal kind from a table."""
    return int if isinstance(offset, int) else Var if isinstance(offset, Var) else offset


def _thunk(
    number: int, calls: Sequence[Call], function: str, program: Program, tag: str, flush: FlushMode | None
) -> list[str]:
    """Return @call_<number>: the kernel with the addresses of one of the calls and the sizes that they share."""
    first = calls[0]
    varying = [k for k, p in enumerate(first.args) if any(c.args[k].offset != p.offset for c in calls[1:])]
    fixed = tuple(p.offset for k, p in enumerate(first.args) if k not in varying)
    code = symbol_code(program, first.sizes + fixed)
    code.lines[:0] = [
        "%symbols.at = getelementptr %request, ptr %request, i64 0, i32 2",
        "%symbols = load ptr, ptr %symbols.at, align 8",
    ]
    addresses, table = list(first.args), list[str]()
    if varying:
        words = [_word(c.args[k].offset, program) for c in calls for k in varying]
        table = [f"@words_{number} = internal constant [{len(words)} x i64] [{', '.join(f'i64 {w}' for w in words)}]"]
        for k, place in _read_places(number, first.args, varying, code).items():
            addresses[k] = place
    args = [f"ptr {address(f'a{k}', place, code, tag)}" for k, place in enumerate(addresses)]
    args += [f"i64 {code.operand(size)}" for size in first.sizes]
    args += ["i64 %begin", "i64 %end", "ptr %scratch"]
    # a kernel is large and takes long to optimise: inlined, it would be optimised once for each thunk
    run = f"call void @{function}({', '.join(args)}) noinline"
    code.lines += [*flush.begin, run, *flush.end] if first.flushes and flush is not None else [run]
    taken = "ptr %request, i64 %begin, i64 %end, ptr %scratch, i64 %index"
    return [*table, function_text(f"define internal void @call_{number}({taken}) nounwind {{", code.lines, "ret void")]


def _word(offset: Size, program: Program) -> int:
    """Return a word of a thunk's table: a number, or the place of a symbol."""
    return program.places[offset.name] if isinstance(offset, Var) else static(offset)


def _read_places(
    number: int, operands: Sequence[Address], varying: Sequence[int], code: SizeCode
) -> dict[int, Address]:
    """Read the offsets that vary from row `@rows[%index]` of the thunk's table; return the places by argument."""
    code.lines += [
        "%row.at = getelementptr i32, ptr @rows, i64 %index",
        "%row.short = load i32, ptr %row.at, align 4",
        "%row = zext i32 %row.short to i64",
    ]
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
