"""Walking and rewriting work of any form: definitions, groups, statements."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from operator import is_

from aot.codegen.ir.by_identity import by_identity
from aot.codegen.ir.definition import Definition, Group, Result
from aot.codegen.ir.expressions import LEAVES, loaded_names, loads, rewrite
from aot.codegen.ir.loops import (
    Alloc,
    Buffer,
    Expr,
    For,
    If,
    Let,
    Load,
    LoopKind,
    Prefetch,
    Space,
    Stmt,
    Store,
    TileOp,
    While,
)

Work = Definition | Group | tuple[Stmt, ...]
_AROUND = (For, While, Let, Alloc)  # statements with a body


def members(work: Work) -> Iterator[Definition]:
    """Yield the definitions of a work, in order."""
    match work:
        case Definition():
            yield work
        case Group():
            for member in work.members:
                yield from members(member)
        case _:
            return


def statements(stmts: tuple[Stmt, ...]) -> Iterator[Stmt]:
    """Yield all statements, in order, outer ones first."""
    stack = list(reversed(stmts))  # those of a large group are nested deep: a generator for each level would be slow
    while stack:
        s = stack.pop()
        yield s
        if isinstance(s, Store):
            continue
        if isinstance(s, _AROUND):
            stack += reversed(s.body) if len(s.body) > 1 else s.body
        elif isinstance(s, If):
            stack.extend(reversed((*s.body, *s.otherwise)))


def expressions(work: Work) -> Iterator[Expr]:
    """Yield the expressions that a work reads: values, indices, conditions."""
    match work:
        case Definition():
            yield work.value
            yield from work.index
            for index, _ in work.where:
                yield index
            for r in work.results:
                yield from (*r.index, r.value)
        case Group():
            for member in work.members:
                yield from expressions(member)
        case _:
            for stmt in statements(work):
                yield from _of_statement(stmt)


def _of_statement(stmt: Stmt) -> Iterator[Expr]:
    """Yield the expressions of a statement without those in it."""
    match stmt:
        case Store(buffer, index, value, accumulate):
            yield from (*index, value)
            if accumulate:
                yield Load(buffer, index)
        case Prefetch(_, index):
            yield from index
        case TileOp():
            yield from tile_expressions(stmt)
        case For(var):
            if isinstance(var.extent, Expr):
                yield var.extent
        case While(condition) | If(condition):
            yield condition
        case Let(_, value):
            yield value
        case Alloc():
            pass


def tile_expressions(stmt: TileOp) -> Iterator[Expr]:
    """Yield the index and the distance of rows of a tile; a load of tiles reads memory, too."""
    yield from stmt.index
    if isinstance(stmt.stride, Expr):
        yield stmt.stride
    if stmt.op == "load" and stmt.buffer is not None:
        yield Load(stmt.buffer, stmt.index)


def local(work: Work) -> frozenset[Buffer]:
    """Return the buffers that exist inside of the work only."""
    match work:
        case Definition():
            return frozenset((work.point,) if work.results else ())
        case Group():
            return frozenset(work.temps).union(*map(local, work.members))
        case _:
            return frozenset(b for stmt in work for b in _local_of(stmt))


def _local_of(stmt: Stmt) -> frozenset[Buffer]:
    match stmt:
        case Store() | Prefetch() | TileOp():
            return frozenset()
        case Alloc(buffer, body):
            return local(body) | {buffer}
        case If(_, body, otherwise):
            return local(body) | local(otherwise)
        case For() | While() | Let():
            return local(stmt.body)


@by_identity(1 << 12, "known_reads")
def reads(work: Work) -> tuple[Load, ...]:
    """Return the loads of memory outside of the work, each once."""
    inner = {b.name for b in local(work)}
    outside = (x for x in loads(*expressions(work)) if x.buffer.space is not Space.TABLE)
    return tuple(x for x in outside if x.buffer.name not in inner)


@by_identity(1 << 12, "known_writes")
def writes(work: Work) -> tuple[Buffer, ...]:
    """Return the buffers outside of the work that it writes, each once."""
    inner = {b.name for b in local(work)}
    return tuple(b for b in dict.fromkeys(_targets(work)) if b.name not in inner)


def _targets(work: Work) -> Iterator[Buffer]:
    match work:
        case Definition():
            yield work.out
            yield from (r.out for r in work.results)
        case Group():
            for member in work.members:
                yield from _targets(member)
        case _:
            for stmt in work:
                match stmt:
                    case Store():
                        yield stmt.buffer
                    case Prefetch():
                        pass
                    case TileOp(op, _, buffer):
                        if op == "store" and buffer is not None:
                            yield buffer
                    case If(_, body, otherwise):
                        yield from _targets(body)
                        yield from _targets(otherwise)
                    case _:
                        yield from _targets(stmt.body)


Change = Callable[[Expr], Expr | None]


def rewrite_work(work: Work, change: Change, change_buffer: Callable[[Buffer], Buffer] = lambda b: b) -> Work:
    """Apply `change` to every expression, and `change_buffer` to every buffer that is written or allocated.

    `change` returns None for what stays, see `expressions.rewrite`. A work that stays as a whole is the same object.
    """
    if isinstance(work, Definition | Group):
        return _rewrite_member(work, change, change_buffer)
    return tuple(_rewrite_statement(s, change, change_buffer) for s in work)


def _rewrite_member(
    work: Definition | Group, change: Change, change_buffer: Callable[[Buffer], Buffer]
) -> Definition | Group:
    if isinstance(work, Definition):
        return rewrite_definition(work, change, change_buffer)
    members = tuple([_rewrite_member(m, change, change_buffer) for m in work.members])
    temps = tuple(map(change_buffer, work.temps))
    if all(map(is_, members, work.members)) and all(map(is_, temps, work.temps)):
        return work
    return replace(work, members=members, temps=temps)


def rewrite_definition(
    d: Definition, change: Change, change_buffer: Callable[[Buffer], Buffer] = lambda b: b
) -> Definition:
    """Apply `change` to every expression of a definition, `change_buffer` to its outputs."""
    out, value, where, results = change_buffer(d.out), rewrite(d.value, change), d.where, d.results
    index = tuple([rewrite(i, change) for i in d.index])
    if where:
        where = tuple((rewrite(i, change), n) for i, n in where)
    if results:
        results = tuple(_rewrite_result(r, change, change_buffer) for r in results)
    if out is d.out and value is d.value and all(map(is_, index, d.index)) and (where, results) == (d.where, d.results):
        return d
    return Definition(out, d.axes, value, index, where, results)


def _rewrite_result(r: Result, change: Change, change_buffer: Callable[[Buffer], Buffer]) -> Result:
    return Result(change_buffer(r.out), tuple(rewrite(i, change) for i in r.index), rewrite(r.value, change))


def _rewrite_statement(stmt: Stmt, change: Change, change_buffer: Callable[[Buffer], Buffer]) -> Stmt:
    def inside(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return tuple(_rewrite_statement(s, change, change_buffer) for s in body)

    match stmt:
        case Store(buffer, index, value, accumulate):
            return Store(
                change_buffer(buffer), tuple(rewrite(i, change) for i in index), rewrite(value, change), accumulate
            )
        case Prefetch(buffer, index):
            return replace(stmt, buffer=change_buffer(buffer), index=tuple(rewrite(i, change) for i in index))
        case TileOp(_, _, buffer, index):
            index = tuple(rewrite(i, change) for i in index)
            return replace(stmt, buffer=None if buffer is None else change_buffer(buffer), index=index)
        case For():
            return replace(stmt, body=inside(stmt.body))
        case While(condition, body):
            return While(rewrite(condition, change), inside(body))
        case Let(var, value, body):
            return Let(var, rewrite(value, change), inside(body))
        case Alloc(buffer, body):
            return Alloc(change_buffer(buffer), inside(body))
        case If(condition, body, otherwise):
            return If(rewrite(condition, change), inside(body), inside(otherwise))


def move_loads(names: dict[str, Buffer]) -> Change:
    """Redirect loads of the buffers in `names` to the buffers given there, at the same index."""

    def change(e: Expr) -> Expr | None:
        if isinstance(e, LEAVES) or names.keys().isdisjoint(loaded_names(e)):
            return e
        if isinstance(e, Load) and e.buffer.name in names and e.buffer.space is not Space.TABLE:
            index = tuple(rewrite(i, change) for i in e.index) if loads(*e.index) else e.index
            return Load(names[e.buffer.name], index)
        return None

    return change


def uses_tiles(stmts: tuple[Stmt, ...]) -> bool:
    """True if `stmts` use tile registers; conditions are not searched, as none configures them."""
    stack = list(stmts)
    while stack:
        s = stack.pop()
        if isinstance(s, TileOp):
            return True
        if isinstance(s, For | Let | Alloc):
            stack.extend(s.body)
    return False


def has_parallel(stmts: tuple[Stmt, ...]) -> bool:
    """True if `stmts` contain a parallel loop. A legal one is inside of no If or While, so these are not searched."""
    stack = list(stmts)  # statements of a large group are nested deeper than Python's stack
    while stack:
        s = stack.pop()
        if isinstance(s, For) and s.kind is LoopKind.PARALLEL:
            return True
        if isinstance(s, For | Let | Alloc):
            stack.extend(s.body)
    return False


def has_loops(stmts: tuple[Stmt, ...]) -> bool:
    """True if `stmts` contain a loop that is not written out."""
    written_out = (LoopKind.UNROLLED, LoopKind.VECTOR)
    return any(isinstance(s, While) or (isinstance(s, For) and s.kind not in written_out) for s in statements(stmts))


def has_prefetch(stmts: tuple[Stmt, ...], matches: Callable[[Prefetch], bool]) -> bool:
    """True if `stmts` contain a prefetch that satisfies `matches`."""
    return any(isinstance(s, Prefetch) and matches(s) for s in statements(stmts))
