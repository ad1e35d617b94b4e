"""Register buffers: tables of values, never in memory.

A cell is (first element, lanes). Cells of a buffer are disjoint; an access of another shape cuts or joins them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Protocol

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.by_identity import by_identity
from aot.codegen.ir.expressions import loads, variables
from aot.codegen.ir.index import Affine
from aot.codegen.ir.loops import (
    Alloc,
    Buffer,
    Const,
    Expr,
    For,
    If,
    Let,
    LoopKind,
    Prefetch,
    Stmt,
    Store,
    TileOp,
    Var,
    While,
)
from aot.codegen.llvm.emit.function_text import Function, Value, vector

Cell = tuple[int, int]
_NONE = frozenset[Buffer]()


@dataclass(slots=True)
class Cells:
    """Cells of a buffer; their elements have the type `scalar`."""

    scalar: str
    values: dict[Cell, Value] = field(default_factory=dict[Cell, Value])

    def type(self, lanes: int) -> str:
        return vector(self.scalar, lanes)

    def read(self, f: Function, first: int, lanes: int) -> Value:
        """Return `lanes` elements from `first` on; elements that were never written are poison."""
        cell = self.values.get((first, lanes))
        if cell is not None:
            return cell
        if lanes == 1:
            for (start, width), value in self.values.items():
                if start <= first < start + width:
                    return f.part(value, first - start, 1)
            return Value(self.type(1), "poison")
        vector_value = Value(self.type(lanes), "poison")
        for i in range(lanes):
            element = self.read(f, first + i, 1)
            vector_value = vector_value if element.name == "poison" else f.insert(vector_value, element, i)
        return vector_value

    def write(self, f: Function, first: int, lanes: int, value: Value) -> None:
        if (first, lanes) not in self.values:
            for start, width in list(self.values):
                if start < first + lanes and first < start + width:
                    old = self.values.pop((start, width))
                    for i in range(width):
                        if not first <= start + i < first + lanes:
                            self.values[start + i, 1] = f.part(old, i, 1)
        self.values[first, lanes] = value


def stored(stmts: tuple[Stmt, ...]) -> frozenset[str]:
    """Return the names of the buffers that are written."""
    return _stored(stmts[0]) if len(stmts) == 1 else frozenset[str]().union(*map(_stored, stmts))


@by_identity(0, "known_stored")
def _stored(s: Stmt) -> frozenset[str]:
    match s:
        case Store(buffer):
            return frozenset((buffer.name,))
        case TileOp("store", _, buffer) if buffer is not None:
            return frozenset((buffer.name,))
        case For(_, body) | Let(_, _, body) | Alloc(_, body) | While(_, body):
            return stored(body)
        case If(_, body, otherwise):
            return stored((*body, *otherwise))
        case Prefetch() | TileOp():
            return frozenset()


class Sums(Protocol):
    """Normal forms that are known (`aot.codegen.llvm.emit.address`)."""

    def normal_in(self, expr: Expr, env: Mapping[Var, Affine]) -> Affine: ...


def fits_registers(alloc: Alloc, sums: Sums, env: dict[Var, Affine], written: frozenset[Var]) -> bool:
    """True if every index is constant once unrolled and vector loops are written out; `written`: those outside."""
    return _constant(alloc.body, alloc.buffer, sums, dict(env), written)


def _constant(
    stmts: tuple[Stmt, ...], buffer: Buffer, sums: Sums, env: dict[Var, Affine], known: frozenset[Var]
) -> bool:
    for s in stmts:
        while isinstance(s, Alloc) and len(s.body) == 1:  # a group has an allocation in another for each member
            (s,) = s.body
        if buffer in _accessed(s) and not _constant_in(s, buffer, sums, env, known):
            return False
    return True


@by_identity(0, "known_accessed")
def _accessed(s: Stmt) -> frozenset[Buffer]:
    """Return the buffers that a statement and those in it load or store."""
    match s:
        case Store(buffer, index, value):
            return _loaded(*index, value) | {buffer}
        case Prefetch() | TileOp():
            return _NONE
        case For(_, body) | Alloc(_, body):
            return _accessed_by(body)
        case Let(_, value, body):
            return _accessed_by(body) | _loaded(value)
        case If(condition, body, otherwise):
            return _accessed_by((*body, *otherwise)) | _loaded(condition)
        case While(condition, body):
            return _accessed_by(body) | _loaded(condition)


def _accessed_by(stmts: tuple[Stmt, ...]) -> frozenset[Buffer]:
    return _accessed(stmts[0]) if len(stmts) == 1 else frozenset[Buffer]().union(*map(_accessed, stmts))


def _loaded(*roots: Expr) -> frozenset[Buffer]:
    operands = loads(*roots)
    return frozenset([x.buffer for x in operands]) if operands else _NONE


def _constant_in(s: Stmt, buffer: Buffer, sums: Sums, env: dict[Var, Affine], known: frozenset[Var]) -> bool:
    match s:
        case Store(target, index, value):
            target_known = target != buffer or _is_known(buffer, index, sums, env, known)
            return target_known and _reads_known((*index, value), buffer, sums, env, known)
        case Prefetch() | TileOp():
            return True
        case For(var, body, kind):
            inner = {v: a for v, a in env.items() if v != var}
            written = kind in (LoopKind.UNROLLED, LoopKind.VECTOR)
            return _constant(body, buffer, sums, inner, known | {var} if written else known - {var})
        case Let(var, value, body):
            read = _reads_known((value,), buffer, sums, env, known)
            return read and _constant(body, buffer, sums, {**env, var: sums.normal_in(value, env)}, known)
        case Alloc(_, body):
            return _constant(body, buffer, sums, env, known)
        case If(condition, body, otherwise):
            return _reads_known((condition,), buffer, sums, env, known) and _constant(
                (*body, *otherwise), buffer, sums, env, known
            )
        case While(condition, body):
            return _reads_known((condition,), buffer, sums, env, known) and _constant(body, buffer, sums, env, known)


def _reads_known(
    roots: tuple[Expr, ...], buffer: Buffer, sums: Sums, env: dict[Var, Affine], known: frozenset[Var]
) -> bool:
    return all(_is_known(buffer, x.index, sums, env, known) for x in loads(*roots) if x.buffer == buffer)


def _is_known(
    buffer: Buffer, index: tuple[Expr, ...], sums: Sums, env: dict[Var, Affine], known: frozenset[Var]
) -> bool:
    starts = buffer.start or (None,) * len(index)
    for i, start in zip(index, starts, strict=True):
        offset = sums.normal_in(i, env)
        if start is not None and not isinstance(start, Const):
            offset = offset.plus(sums.normal_in(start, env), -1)
        for x in offset.terms:
            if x not in known and (isinstance(x, Var) or loads(x) or not variables(x) <= known):
                return False
    return True
