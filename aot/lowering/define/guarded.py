"""Clamps and bounds tests in works, for indices that are not proven to be inside of their dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial, reduce

from aot.codegen.ir.definition import Definition, Group
from aot.codegen.ir.expressions import rewrite
from aot.codegen.ir.loops import Alloc, Const, Expr, For, If, Let, Load, Stmt, Store, While, as_expr, cast, prim
from aot.codegen.ir.traverse import Change, Work, rewrite_definition, rewrite_work
from aot.lowering.ir.obligations import Obligation
from aot.runtime.abi import DType

Loaded = dict[Load, list[Obligation]]
Stored = dict[tuple[str, tuple[Expr, ...]], list[Obligation]]


def guarded(work: Work, unproven: Sequence[Obligation]) -> Work:
    """Return a work that tests each index in `unproven`: nothing is stored outside of a buffer, and a load there is 0.

    In nests, indices of loads are clamped, and only whether there is any element is tested: both can leave inner loops.
    """
    loaded, stored = Loaded(), Stored()
    for o in {(o.what, o.buffer.name, o.place, o.dimension): o for o in unproven}.values():
        if o.what == "load":
            loaded.setdefault(Load(o.buffer, o.place), []).append(o)
        else:
            stored.setdefault((o.buffer.name, o.place), []).append(o)
    change = partial(_guard, loaded, isinstance(work, tuple))
    match work:
        case Definition():
            tested = tuple((o.index, o.extent) for o in stored.get((work.out.name, work.target), ()))
            return replace(rewrite_definition(work, change), where=(*work.where, *tested))
        case Group():
            members = tuple(guarded(m, unproven) for m in work.members)
            return replace(work, members=tuple(m for m in members if isinstance(m, Definition | Group)))
        case _:
            rewritten = rewrite_work(work, change) if loaded else work
            assert isinstance(rewritten, tuple)
            stored = {(name, tuple(rewrite(i, change) for i in at)): value for (name, at), value in stored.items()}
            return tuple(_tested(s, stored, change) for s in rewritten) if stored else rewritten


def _guard(loaded: Loaded, is_nest: bool, e: Expr) -> Expr | None:
    """Guard a load with unproven indices: they are clamped in a nest, and tested in a definition."""
    if not isinstance(e, Load):
        return None
    index = [rewrite(i, partial(_guard, loaded, is_nest)) for i in e.index]
    tests: list[tuple[Expr, Expr]] = []
    for o in loaded.get(e, ()):
        position, extent = cast(index[o.dimension], DType.I64), as_expr(o.extent, DType.I64)
        if is_nest:
            index[o.dimension] = prim("max", prim("min", position, extent - 1), 0)
        if not (is_nest and o.has_elements):
            tests.append((Const(0) if is_nest else position, extent))
    guard: Expr = Load(e.buffer, tuple(index))
    for position, extent in tests:
        guard = prim("within", position, extent, guard, 0)
    return guard


def _tested(s: Stmt, stored: Stored, change: Change) -> Stmt:
    """Return the statement with a bounds test around each store that has an unproven index."""

    def inside(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return tuple(_tested(b, stored, change) for b in body)

    match s:
        case Store(buffer, index):
            tests: list[Expr] = []
            positions = list(index)
            for o in stored.get((buffer.name, index), ()):
                position = positions[o.dimension] = cast(rewrite(o.index, change), DType.I64)
                tests += [prim("ge", position, 0), prim("lt", position, as_expr(o.extent, DType.I64))]
            store = replace(s, index=tuple(positions))
            return If(reduce(lambda a, b: prim("and", a, b), tests), (store,)) if tests else s
        case For() | While() | Let() | Alloc():
            return replace(s, body=inside(s.body))
        case If(condition, body, otherwise):
            return If(condition, inside(body), inside(otherwise))
        case _:
            return s
