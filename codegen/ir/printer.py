"""Text form of kernels, works and schedules: indentation is nesting, the loop kind is the first word of the line."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from aot.codegen.ir.definition import Definition, Group, RowRange
from aot.codegen.ir.loops import (
    Alloc,
    Buffer,
    Const,
    Expr,
    For,
    If,
    Kernel,
    Let,
    Load,
    LoopKind,
    Prefetch,
    Prim,
    Reduce,
    Size,
    Space,
    Stmt,
    Store,
    TileOp,
    Var,
    While,
)
from aot.codegen.ir.primitives import COMPARISONS
from aot.codegen.ir.schedule import WORD_BYTES, Pack, Schedule, Tail
from aot.runtime.abi import DType

INFIX = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "div": "/",
    "floordiv": "//",
    "mod": "%",
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
}
LEVELS = (sorted(COMPARISONS), ("add", "sub"), ("mul", "div", "floordiv", "mod"))
PRECEDENCE = {fn: level for level, fns in enumerate(LEVELS) for fn in fns}
ASSIGN = {None: "=", "add": "+=", "mul": "*=", **{fn: f"{fn}=" for fn in ("max", "larger", "min", "and", "or")}}


def kernel_text(kernel: Kernel) -> str:
    """Return the text of a kernel, one statement a line."""
    params = ", ".join([*(s.name for s in kernel.sizes), *map(_declaration, kernel.buffers)])
    return "\n".join([f"kernel {kernel.name}({params})", *_lines(kernel.body, 1)]) + "\n"


def definition_text(work: Definition | Group, depth: int = 0) -> str:
    """Return a definition as a formula, a group as the list of its members."""
    pad = "  " * depth
    match work:
        case Group(name, axes, temps, members, row_ranges):
            suffix = f" with {', '.join(map(_declaration, temps))}" if temps else ""
            head = f"{pad}group {name} over {_axes(axes)}{suffix}"
            rows = (f"{pad}  rows {_row_range(w)}" for w in row_ranges)
            return "\n".join([head, *rows, *(definition_text(m, depth + 1) for m in members)])
        case Definition(out, axes, value, _, where):
            limits = "".join(f" where {expr_text(i)} < {size_text(b)}" for i, b in where)
            over = f"    for {_axes(axes)}" if axes else ""
            line = f"{pad}{out.name}[{_list(work.target)}] = {expr_text(value)}{over}{limits}"
            beside = (f"{pad}  and {r.out.name}[{_list(r.index)}] = {expr_text(r.value)}" for r in work.results)
            return "\n".join((line, *beside))


def _row_range(w: RowRange) -> str:
    limits = f" within {w.within[0]}..{w.within[1]}" if w.within is not None else ""
    return f"{w.axis.name} = {w.of.name} * {w.scale} - {w.before} +: {w.size}{limits}"


def statements_text(stmts: tuple[Stmt, ...], depth: int = 0) -> str:
    """Return the text of statements, one a line."""
    return "\n".join(_lines(stmts, depth))


def expr_text(expr: Expr) -> str:
    """Return an expression as maths."""
    match expr:
        case Const(value, dtype):
            if dtype is DType.BOOL:
                return "true" if value else "false"
            return f"{value:.9g}" if isinstance(value, float) else str(value)
        case Var(name):
            return name
        case Load(buffer, index):
            return f"{buffer.name}[{_list(index)}]"
        case Prim("add", (a, Const(value, dtype))) if dtype is not DType.BOOL and value < 0:
            return expr_text(Prim("sub", (a, Const(-value, dtype)), expr.dtype))
        case Prim(fn, (a, b)) if fn in INFIX:
            return f"{_operand(a, fn)} {INFIX[fn]} {_operand(b, fn, right=True)}"
        case Prim("cast" | "bits" as fn, (a,), dtype):
            return f"{dtype.value}({expr_text(a)})" if fn == "cast" else f"bits.{dtype.value}({expr_text(a)})"
        case Prim(fn, args):
            return f"{fn}({_list(args)})"
        case Reduce(fn, axes, body, init):
            return f"{fn}[{_axes(axes)}]({expr_text(body)}{f', from {expr_text(init)}' if init is not None else ''})"


def _operand(expr: Expr, parent: str, right: bool = False) -> str:
    """Return an operand, in parentheses only if the meaning needs them."""
    strict = right and not (isinstance(expr, Prim) and expr.fn == parent in ("add", "mul"))
    tight = isinstance(expr, Prim) and expr.fn in PRECEDENCE and PRECEDENCE[expr.fn] < PRECEDENCE[parent] + strict
    return f"({expr_text(expr)})" if tight else expr_text(expr)


def _list(parts: tuple[Expr, ...]) -> str:
    return ", ".join(map(expr_text, parts))


def _axes(axes: tuple[Var, ...]) -> str:
    return ", ".join(f"{a.name} in {_range(a)}" for a in axes) or "one point"


def _range(var: Var) -> str:
    return f"{var.low}..{size_text(var.extent)}" if var.low else size_text(var.extent)


def size_text(size: Size | None) -> str:
    """Return a size as maths; `?` for one without a bound."""
    return "?" if size is None else str(size) if isinstance(size, int) else expr_text(size)


def _declaration(b: Buffer) -> str:
    starts = [f"{expr_text(s)} +: " if s != Const(0) else "" for s in b.start] or [""] * len(b.shape)
    shape = ", ".join(s + size_text(n) for s, n in zip(starts, b.shape, strict=True))
    return f"{b.name}: {b.dtype.value}[{shape}]" + (f" @{b.space.value}" if b.space is not Space.ARG else "")


def _lines(stmts: tuple[Stmt, ...], depth: int) -> Iterator[str]:
    pad = "  " * depth
    for stmt in stmts:
        match stmt:
            case For(var, body, kind, lanes):
                step = f" by {lanes}" if kind is LoopKind.VECTOR else ""
                yield f"{pad}{kind.value} {var.name} in {_range(var)}{step}:"
                yield from _lines(body, depth + 1)
            case While(condition, body):
                yield f"{pad}while {expr_text(condition)}:"
                yield from _lines(body, depth + 1)
            case Let(var, value, body):
                yield f"{pad}let {var.name} = {expr_text(value)}"
                yield from _lines(body, depth)
            case Alloc(buffer, body):
                yield f"{pad}alloc {_declaration(buffer)}"
                yield from _lines(body, depth)
            case If(condition, body, otherwise):
                yield f"{pad}if {expr_text(condition)}:"
                yield from _lines(body, depth + 1)
                if otherwise:
                    yield f"{pad}else:"
                    yield from _lines(otherwise, depth + 1)
            case Store(buffer, index, value, accumulate):
                yield f"{pad}{buffer.name}[{_list(index)}] {ASSIGN[accumulate]} {expr_text(value)}"
            case TileOp():
                yield f"{pad}{_tile_op(stmt)}"
            case Prefetch(buffer, index, ahead, least, level):
                second = "" if level == 1 else f" into L{level}"
                further = f" + {ahead}" if ahead else ""
                calls = f" in calls of {least} or more" if least else ""
                yield f"{pad}prefetch {buffer.name}[{_list(index)}]{further}{calls}{second}"


def _tile_op(stmt: TileOp) -> str:
    tiles = ", ".join(map(str, stmt.tiles))
    match stmt.op:
        case "configure":
            return f"tiles {' '.join(f'{rows}x{size}' for rows, size in stmt.shape)}"
        case "load" | "store" if stmt.buffer is not None:
            memory = f"{stmt.buffer.name}[{_list(stmt.index)}] by {size_text(stmt.stride)}"
            return f"tile {tiles} = {memory}" if stmt.op == "load" else f"{memory} = tile {tiles}"
        case "dot":
            first, second, third = stmt.tiles
            return f"tile {first} += tile {second} * tile {third} of {stmt.kind}"
        case op:
            return f"tile {tiles} = 0" if op == "zero" else "tiles released"


def schedule_text(s: Schedule, depth: int = 0) -> str:
    """Return one line for each schedule, members below; equal members in a row are one line with their count."""
    tiles = " ".join(f"{t.axis}:{t.size}" + ("" if t.tail is Tail.BALANCE else f"/{t.tail.value}") for t in s.tile)
    fused = " ".join(f"{n}=({','.join(p)})" for n, p in s.fuse)
    parts = [
        f"fuse[{fused}]" if s.fuse else "",
        f"blocks[{' '.join(f'{n}:{size}' for n, size in s.blocks)}]" if s.blocks else "",
        f"order[{' '.join(s.order)}]" if s.order else "",
        f"tile[{tiles}]" if s.tile else "",
        f"unroll[{' '.join(s.unroll)}]" if s.unroll else "",
        f"skip_padding[{' '.join(s.skip_padding)}]" if s.skip_padding else "",
        f"lanes[{s.lanes[0]}:{s.lanes[1]}]" if s.lanes else "",
        f"partials={s.partials}" if s.partials != 1 else "",
        f"pack[{' '.join(map(_pack, s.pack))}]" if s.pack else "",
        f"prefetch={s.prefetch}" if s.prefetch else "",
        f"prefetch_within={s.prefetch_within}" if s.prefetch_within is not None else "",
        f"row_vectors={s.row_vectors}" if s.row_vectors else "",
        f"f16_sums={s.f16_sums}" if s.f16_sums else "",
        f"dots={s.dots}" if s.dots else "",
        f"matrix={s.matrix}" if s.matrix else "",
        f"scaled_steps={s.scaled_steps}" if s.scaled_steps else "",
        "prefetch_epilogue" if s.prefetch_epilogue else "",
        f"prefetch_level={s.prefetch_level}" if s.prefetch_level != 1 and (s.prefetch or s.prefetch_epilogue) else "",
        f"parallel={s.parallel}" if s.parallel else "",
        f"pitch[{' '.join(f'{n}+{e}' for n, e in s.pitch)}]" if s.pitch else "",
    ]
    line = "  " * depth + (" ".join(filter(None, parts)) or "plain")
    runs = ((member, len([*equal])) for member, equal in groupby(s.members))
    return "\n".join([line, *(schedule_text(m, depth + 1) + (f" x{n}" if n > 1 else "") for m, n in runs)])


def _pack(p: Pack) -> str:
    words = f" words of {p.words}" if p.words else ""
    words += f" by {p.word_bytes} bytes" if p.word_bytes != WORD_BYTES else ""
    axis = str(p.axis) if p.fused is None else f"({p.fused},{p.axis})"
    return f"{p.operand}.{axis}:{p.width}({','.join(map(str, p.order))}){words}"
