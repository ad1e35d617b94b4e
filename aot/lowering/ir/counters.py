"""Integers that works compute without data: counters, and cells that they keep."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from aot.codegen.ir.definition import Definition, Group
from aot.codegen.ir.loops import (
    Buffer,
    Expr,
    For,
    If,
    Let,
    Load,
    Prefetch,
    Prim,
    Reduce,
    Space,
    Stmt,
    Store,
    TileOp,
    Var,
    as_expr,
)
from aot.codegen.ir.traverse import Work
from aot.runtime.abi import DType


class Counters:
    """Integers that works compute from loops, sizes and each other alone: data choose among them, but are not in them.

    child[] = select(x[child[]] < x[child[] + 1], child[] + 1, child[])    is one, cast(x[child[]]) is none

    `kept`: buffers whose integers count as such, too; `given`: those that hold data before the works run.
    """

    def __init__(self, works: Iterable[Work], state: Collection[str] = (), written: Collection[str] = ()) -> None:
        self._kept = state
        self._made: dict[str | Var, list[Expr | None]] = {}  # values by name of a buffer, or by variable; None: data
        for work in works:
            self._collect(work)
        self._stored = {n: values for n, values in self._made.items() if isinstance(n, str) and n not in written}
        self._own = self._made.keys() - written
        while data := {
            n for n in self._own if not all(v is not None and self.is_free_of_data(v) for v in self._made[n])
        }:
            self._own -= data

    @property
    def stored(self) -> Mapping[str, Sequence[Expr | None]]:
        """Return the values that works store to each buffer, by its name; None for a value that is no integer."""
        return self._stored

    def is_free_of_data(self, e: Expr) -> bool:
        """True if no data are in the value of `e`."""
        if e.dtype is DType.BOOL:
            return True
        match e:
            case Load(buffer):
                return buffer.space is Space.TABLE or buffer.name in self._own or buffer.name in self._kept
            case Var():
                return e not in self._made or e in self._own
            case Prim("select", (_, *args)) | Prim("within", (_, _, *args)):
                return all(map(self.is_free_of_data, args))
            case Prim(_, args):
                return all(a.dtype is DType.BOOL or a.dtype.is_integer for a in args) and all(
                    map(self.is_free_of_data, args)
                )
            case Reduce(_, _, body, init):
                return self.is_free_of_data(body) and (init is None or self.is_free_of_data(init))
            case _:
                return True

    def is_free_or_clamped(self, e: Expr) -> bool:
        """True if no data are in the value of `e` but those between a least and a greatest value that has none."""
        match e:
            case Prim("max" | "min" as fn, (a, b), DType.I64):
                pairs = ((x, y) for x, y in ((a, b), (b, a)) if self.is_free_of_data(y) and isinstance(x, Prim))
                inner = (x.args for x, _ in pairs if x.fn in ("max", "min") and x.fn != fn)
                return self.is_free_of_data(e) or any(any(map(self.is_free_of_data, args)) for args in inner)
            case Prim(_, args):
                return all(map(self.is_free_or_clamped, args))
            case _:
                return self.is_free_of_data(e)

    def _collect(self, work: Work) -> None:
        match work:
            case Definition():
                self._add(work.out, work.value)
                for r in work.results:
                    self._add(r.out, r.value)
            case Group():
                for member in work.members:
                    self._collect(member)
            case _:
                for stmt in work:
                    self._collect_from(stmt)

    def _collect_from(self, s: Stmt) -> None:
        match s:
            case Store(buffer, _, value):
                self._add(buffer, value)
            case TileOp(_, _, buffer):
                if buffer is not None:
                    self._add(buffer, None)
            case If(_, body, otherwise):
                self._collect((*body, *otherwise))
            case Prefetch():
                return
            case For(var):
                self._made.setdefault(var, []).append(as_expr(1 if var.extent is None else var.extent, DType.I64))
                self._collect(s.body)
            case Let(var, value):
                self._made.setdefault(var, []).append(value)
                self._collect(s.body)
            case _:
                self._collect(s.body)

    def _add(self, buffer: Buffer, value: Expr | None) -> None:
        self._made.setdefault(buffer.name, []).append(value if buffer.dtype.is_integer else None)
