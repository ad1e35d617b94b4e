"""Memory of `aot.opset.control.growing_variables`: offsets of the variables, and the works of operations on them.

    state of a request     room | flag, 0, sizes of v0 | flag, 0, sizes of v1 | ... | row 0 | row 1 | ...
    a row                  room for tokens of v0 | of v1 | ...

Offsets depend on the room alone. If CacheSizes has a `context`, the room is large enough for it. When the room is too
small, all rows move to their offsets in a larger one, from the last element on, so that nothing is overwritten. They
move before anything else is written, so that an inference may begin again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.definition import Definition
from aot.codegen.ir.loops import (
    Buffer,
    Const,
    Expr,
    For,
    If,
    Load,
    Size,
    Space,
    Stmt,
    Store,
    Var,
    as_expr,
    cast,
    dense,
    prim,
    select,
)
from aot.codegen.ir.program import MemoryRegion, StateVariable
from aot.ir.graph import Node
from aot.ir.operand import Input
from aot.ir.types import Shape
from aot.lowering.define.state import LINE_BYTES
from aot.lowering.ir.steps import Value, indices
from aot.lowering.ir.symbolic_sizes import Sizes
from aot.opset.control.growing_variables import AGREE, BYTES, MOVED, PAST, ROOM, ROWS, SHOWN, WHOLE, Append, CacheSizes
from aot.runtime.abi import DType
from aot.runtime.loading.manifest import CacheInfo

ENTRIES = LINE_BYTES // 8  # entries of 8 bytes in the head of a variable
FLAG = 0  # entry of a head that is 1 once the variable was set; entry 1 is unused
VARYING = 2  # first entry of a head with a size that varies
# Tokens by which room grows. Rooms are odd multiples of 64, so that rows fall into different cache sets.
ROOM_STEP = 128
DYNAMIC = -1

Part = Callable[[Node, Size, Shape, DType], Buffer]


@dataclass(frozen=True, slots=True)
class Caches:
    """The variables of one CacheSizes, which are all that the model has."""

    op: CacheSizes
    batched: bool  # the number of rows varies

    @property
    def row(self) -> int:
        """The number of elements that a token takes in all variables."""
        return sum(n * w for n, w in zip(self.op.runs, self.op.widths, strict=True))

    @property
    def data(self) -> int:
        """The byte offset of rows."""
        return LINE_BYTES * (1 + len(self.op.ids))

    def before(self, index: int) -> int:
        """Count the elements of a token of the variables before one of them."""
        return sum(n * w for n, w in list(zip(self.op.runs, self.op.widths, strict=True))[:index])

    def variable_of(self, node: Node) -> StateVariable:
        """Return the variable of an Append."""
        op = node.op
        assert isinstance(op, Append)
        index, type = self.op.ids.index(op.variable_id), node.out_port(0).type
        shape = tuple(n if isinstance(n, int) else DYNAMIC for n in type.shape)
        shape = (*shape[: op.axis], DYNAMIC, *shape[op.axis + 1 :])
        cache = CacheInfo(op.axis, 0, self.data, self.row, self.before(index), op.last)
        return StateVariable(op.variable_id, type.dtype, shape, LINE_BYTES * (1 + index), None, cache)

    # ---- CacheSizes

    def sizes(self, node: Node, out: Buffer, new: Input, rows: Input | None, part: Part) -> tuple[Stmt, ...]:
        """Compute the sizes from the heads of the variables, and whether they agree."""
        heads = part(node, 0, (1 + len(self.op.ids), ENTRIES), DType.I64)
        batch, count = new(0), new(1)
        stored_rows, past = self._stored(heads, Const(1), batch)
        known_rows, total = Load(out, (Const(ROWS),)), Load(out, (Const(PAST),)) + count
        return (
            _set(out, ROWS, stored_rows),
            _set(out, PAST, past),
            _set(out, AGREE, Const(1)),
            _set(out, MOVED, Const(0)),
            *self._check_agreement(out, heads, batch),
            *self._check_order(out, batch, rows),
            *self._enlarge(out, total, batch, Load(heads, (Const(0), Const(0)))),
            _set(out, SHOWN, select(prim("eq", known_rows, 0), batch, known_rows)),
            _set(out, WHOLE, total),
        )

    def _stored(self, heads: Buffer, head: Expr, batch: Expr) -> tuple[Expr, Expr]:
        """Return the numbers of rows and tokens that the variable of a head has; 0 before it was set."""
        flag = Load(heads, (head, Const(FLAG)))

        def size(n: Expr) -> Expr:
            return select(prim("ne", flag, 0), n, 0)

        rows, tokens = (Load(heads, (head, Const(entry))) for entry in (VARYING, VARYING + self.batched))
        return size(rows if self.batched else batch), size(tokens)

    def _check_agreement(self, out: Buffer, heads: Buffer, batch: Expr) -> tuple[Stmt, ...]:
        """Note if a variable has other sizes than the first one."""
        others = Var("k", len(self.op.ids) - 1)
        rows, past = self._stored(heads, others + 2, batch)
        alike = prim("and", prim("eq", rows, Load(out, (Const(ROWS),))), prim("eq", past, Load(out, (Const(PAST),))))
        differ = If(prim("eq", select(alike, 1, 0), 0), (_set(out, AGREE, Const(0)),))
        return _over((others,), differ) if others.extent else ()

    def _check_order(self, out: Buffer, batch: Expr, rows: Input | None) -> tuple[Stmt, ...]:
        """Note if stored rows must move: to the places that `rows` says; without them none may, and sizes disagree."""
        known_rows, moved = Load(out, (Const(ROWS),)), _set(out, MOVED, Const(1))
        count = If(prim("ne", known_rows, 0), (If(prim("ne", known_rows, batch), (moved,)),))
        if rows is None:
            return count, If(prim("ne", Load(out, (Const(MOVED),)), 0), (_set(out, AGREE, Const(0)),))
        b = Var("b", rows.shape[0])
        other = If(prim("ne", cast(rows(b), DType.I64), b), (moved,))
        return count, If(prim("ne", known_rows, 0), (For(b, (other,)),))

    def _enlarge(self, out: Buffer, total: Expr, batch: Expr, room: Expr) -> tuple[Stmt, ...]:
        """Set the room for `total` tokens, which is more than the present one if they do not fit, and all bytes."""
        tokens = Const(self.op.context - 1) if self.op.context else prim("floordiv", total * 3, 2)
        larger = prim("floordiv", tokens, ROOM_STEP) * ROOM_STEP + (ROOM_STEP + ROOM_STEP // 2)
        token_bytes = self.row * self.op.element_type.stored_bytes
        rows = prim("max", Load(out, (Const(ROWS),)), batch)
        return (
            _set(out, ROOM, select(prim("gt", total, room), larger, room)),
            _set(out, BYTES, rows * Load(out, (Const(ROOM),)) * token_bytes + 2 * LINE_BYTES),
        )

    # ---- CacheRoom

    def room(self, node: Node, out: Buffer, sizes: Input, part: Part) -> tuple[Stmt, ...]:
        """Move all rows to their new offsets, once there is room for the new tokens."""
        rows, past, needed = (_symbols(sizes)[k] for k in (ROWS, PAST, BYTES))
        heads = part(node, 0, (1,), DType.I64)
        width = self.op.element_type.stored_bytes
        memory = part(node, self.data, (prim("floordiv", needed, width),), self.op.element_type)
        old, new = Load(heads, (Const(0),)), sizes(ROOM)
        b = Var("b", rows)
        row = rows - 1 - b
        segments, layers = self._segments()
        n = Var("n", layers)
        layer = (layers - 1 - n) * (self.row // layers)
        moves: list[Stmt] = []
        for before, runs, size in reversed(segments):
            r, t, e = Var("r", runs), Var("t", past), Var("e", size)
            run, token, element = runs - 1 - r, past - 1 - t, size - 1 - e
            first, inside = row * self.row + layer + before + run * size, token * size + element
            move = Store(memory, (first * new + inside,), Load(memory, (first * old + inside,)))
            moves += _over((r, t, e), move)
        body: tuple[Stmt, ...] = (*_over((b, n), *moves), Store(heads, (Const(0),), new))
        return (If(prim("ne", old, new), body), Store(out, (Const(0),), new))

    def _segments(self) -> tuple[list[tuple[int, int, int]], int]:
        """Return runs of tokens of equal width, one after another: elements before them, their number and the width.

        Those of equal layers are given once, with the number of layers.
        """
        segments: list[tuple[int, int]] = []
        for runs, width in zip(self.op.runs, self.op.widths, strict=True):
            if segments and segments[-1][1] == width:
                runs += segments.pop()[0]
            segments.append((runs, width))
        count = len(segments)
        period = next(k for k in range(1, count + 1) if count % k == 0 and segments == segments[:k] * (count // k))
        before = accumulate((runs * width for runs, width in segments), initial=0)
        return [(first, *one) for first, one in zip(before, segments[:period], strict=False)], count // period

    # ---- Append

    def value(self, node: Node, name: str, sizes: Sizes) -> Value:
        """Return the value of an Append, as a view of the state."""
        op, variable = node.op, self.variable_of(node)
        assert isinstance(op, Append) and variable.cache is not None
        shape, k = sizes.shape(node.out_port(0).shape), op.axis
        room = sizes.of(node.input(3).dims("Append: room")[0])
        tokens_last = (*range(1, k), *range(k + 1, len(shape)), k)
        order = tokens_last if op.last else range(1, len(shape))
        strides = {0: self.row * room, **_dense_strides(order, {**dict(enumerate(shape)), k: room})}
        offset = sizes.of(self.data + variable.cache.before * variable.dtype.stored_bytes * room)
        address = offset if isinstance(offset, int) else sizes.add(offset, "at")
        buffer = Buffer(name, shape, tuple(sizes.of(strides[d]) for d in range(len(shape))), dtype=variable.dtype)
        return Value(buffer, MemoryRegion.STATE, at=address)

    def append(
        self, node: Node, out: Buffer, inputs: Sequence[Input | None], moves: bool
    ) -> tuple[tuple[Stmt, ...] | Definition, ...]:
        """Move rows where they must move; write new tokens after the stored ones, then into the rows' order."""
        op, (x, _, sizes) = node.op, inputs[:3]
        rows = inputs[4] if len(inputs) > 4 else None
        assert isinstance(op, Append) and x is not None and sizes is not None
        past = _symbols(sizes)[PAST]
        axes, at = indices(x.shape)
        target = (*at[: op.axis], past + at[op.axis], *at[op.axis + 1 :])
        new = Definition(out, axes, x(*at), target)
        before = () if rows is None or not moves else (self._moves(op, out, past, sizes, rows),)
        starts = inputs[5] if len(inputs) > 5 else None
        return (*before, new) if starts is None else (*before, new, self._shifts(op, out, past, x.shape, starts))

    def _shifts(self, op: Append, out: Buffer, past: Expr, shape: Shape, starts: Input) -> tuple[Stmt, ...]:
        """Move a row's new tokens from the common write position to the row's own end."""
        axes, at = indices(shape)
        start = prim("max", prim("min", cast(starts(at[0]), DType.I64), past), 0)

        def token(first: Expr) -> tuple[Expr, ...]:
            return (*at[: op.axis], first + at[op.axis], *at[op.axis + 1 :])

        copy = _over(axes[1:], Store(out, token(start), Load(out, token(past))))
        return _over(axes[:1], If(prim("ne", start, past), copy))

    def _moves(self, op: Append, out: Buffer, past: Size, sizes: Input, rows: Input) -> tuple[Stmt, ...]:
        shape = (*out.shape[: op.axis], past, *out.shape[op.axis + 1 :])
        copy = dense("moved", *shape, space=Space.ARENA, dtype=out.dtype)
        axes, at = indices(shape)
        last = _symbols(sizes)[ROWS] - 1
        row = prim("max", prim("min", cast(rows(at[0]), DType.I64), last), 0)
        taken = _over(axes, Store(copy, at, Load(out, (row, *at[1:]))))
        back = _over(axes, Store(out, at, Load(copy, at)))
        return (If(prim("ne", sizes(MOVED), 0), (*taken, *back)),)

    # ---- Assign

    def write(self, node: Node, source: Buffer, part: Part) -> tuple[Stmt, ...]:
        """Write the sizes of a variable."""
        op = node.source(0).node.op
        assert isinstance(op, Append)
        index = self.op.ids.index(op.variable_id)
        entries: list[Size] = [1, 0, *([source.shape[0]] if self.batched else []), source.shape[op.axis]]
        head = part(node, LINE_BYTES * (1 + index), (len(entries),), DType.I64)
        return tuple(Store(head, (Const(k),), as_expr(n, DType.I64)) for k, n in enumerate(entries))


def _dense_strides(order: Sequence[int], shape: dict[int, Size]) -> dict[int, Size]:
    """Return the stride of each dimension if memory has them in this `order`, the outermost one first."""
    strides: dict[int, Size] = {}
    stride: Size = 1
    for d in reversed(order):
        strides[d], stride = stride, stride * shape[d]
    return strides


def _set(out: Buffer, at: int, value: Expr) -> Store:
    return Store(out, (Const(at),), value)


def _over(axes: Sequence[Var], *body: Stmt) -> tuple[Stmt, ...]:
    for axis in reversed(axes):
        body = (For(axis, body),)
    return body


def _symbols(x: Input) -> list[Expr]:
    """Return the symbols for the elements of sizes."""
    return [as_expr(n, DType.I64) for n in x.operand().dims("Append: sizes")]
