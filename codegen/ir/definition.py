"""The computation: definitions and groups of definitions, without order, memory or vectors."""

from __future__ import annotations

from typing import Any, ClassVar

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.expressions import loads, reduction_in
from aot.codegen.ir.loops import Buffer, Const, Expr, Load, Reduce, Size, Space, Var, dense
from aot.codegen.ir.primitives import IDENTITY
from aot.runtime.abi import DType

LOCAL = "'"  # suffix of the names of buffers and axes that are local to a work: names of model values never end in it


class _Hashed:
    """Base of works, which caches the hash: works are the keys of memo tables.

    The other slots are caches of `by_identity`, by which passes ask again and again.
    """

    __slots__ = (
        "_hash",
        "is_whole",
        "known_lanes",
        "known_names",
        "known_reads",
        "known_sizes",
        "known_streaming",
        "known_writes",
        "reduction",
    )
    _hash: int
    is_whole: bool  # every element of the output is written
    known_lanes: dict[Any, Any]
    known_names: frozenset[str]
    known_reads: tuple[Load, ...]
    known_sizes: frozenset[Var]
    known_streaming: dict[Any, Any]
    known_writes: tuple[Buffer, ...]
    reduction: Reduce | None  # inside of the value of a definition, if there is one
    __dataclass_fields__: ClassVar[dict[str, Any]]

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            value = hash(tuple(getattr(self, name) for name in self.__dataclass_fields__))
            object.__setattr__(self, "_hash", value)
            return value


@dataclass(frozen=True, slots=True)
class Result:
    """`out[index] = value`, stored beside the value of a definition at the same point, which is `Definition.point`."""

    out: Buffer
    index: tuple[Expr, ...]
    value: Expr


@dataclass(frozen=True, slots=True)
class Definition(_Hashed):
    """`out[index] = value` for each point of `axes`; points where some `where` index is out of bound are not stored.

    `results`: functions of the value that are stored at each point, too.
    """

    out: Buffer
    axes: tuple[Var, ...]
    value: Expr
    index: tuple[Expr, ...] = ()
    where: tuple[tuple[Expr, Size], ...] = ()
    results: tuple[Result, ...] = ()

    __hash__ = _Hashed.__hash__

    def __post_init__(self) -> None:
        object.__setattr__(self, "reduction", reduction_in(self.value))

    @property
    def point(self) -> Buffer:
        """Buffer of one element that holds the value of the current point, for `results`."""
        return dense(f"point{LOCAL}", 1, space=Space.REGISTERS, dtype=self.value.dtype)

    @property
    def target(self) -> tuple[Expr, ...]:
        """Index that stores the value of a point."""
        return self.index or self.axes

    @property
    def overwrites(self) -> bool:
        """True if the value reads the output: each point overwrites an operand of its own, so it may be run once."""
        return any(x.buffer.name == self.out.name for x in loads(self.value))


@dataclass(frozen=True, slots=True)
class RowRange:
    """Rows (`axis`) that a tile of the shared axis `of` reads: for each point, `size` rows from of*scale - before on.

    `within`: only the rows `low <= row < high` of these, possibly none.
    """

    axis: Var
    of: Var
    scale: int
    before: int
    size: int
    within: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Group(_Hashed):
    """Members that share `axes`. A shared axis indexes `temps` only as a whole index: temps shrink to its tile."""

    name: str
    axes: tuple[Var, ...]
    temps: tuple[Buffer, ...]
    members: tuple[Definition | Group, ...]
    row_ranges: tuple[RowRange, ...] = ()

    __hash__ = _Hashed.__hash__


Work = Definition | Group


def identity(fn: str, dtype: DType) -> Const:
    """Return the identity of reduction `fn` in type `dtype`: for min and max of integers the limits of the type."""
    if dtype.is_float:
        return Const(float(IDENTITY[fn]), dtype)
    if dtype is DType.BOOL:
        return Const(int(fn in ("and", "min", "mul")), dtype)
    least = -(1 << (dtype.bits - 1)) if dtype.is_signed else 0
    most = (1 << (dtype.bits - dtype.is_signed)) - 1
    ones = -1 if dtype.is_signed else most
    return Const({"add": 0, "mul": 1, "max": least, "min": most, "and": ones, "or": 0}[fn], dtype)


def unused_axis(name: str, d: Definition) -> str:
    """Return `name`, extended by underscores until no axis of `d` has that name."""
    taken = {a.name for a in d.axes} | {a.name for a in (d.reduction.axes if d.reduction is not None else ())}
    while name in taken:
        name += "_"
    return name
