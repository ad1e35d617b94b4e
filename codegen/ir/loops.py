"""Loop-nest IR: scalar expressions, statements over buffers, kernels.

    Expr = Const | Var | Load | Prim | Reduce      Stmt = Store | Prefetch | TileOp | For | While | Let | Alloc | If

Every node is immutable, compared by structure, hashable at constant cost, and printable (`aot.codegen.ir.printer`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from enum import StrEnum

from aot.codegen.ir.node import Node, node
from aot.codegen.ir.primitives import COMPARISONS, PRIMS
from aot.runtime.abi import DType


class Space(StrEnum):
    """Memory that a buffer lives in."""

    ARG = "arg"  # pointer parameter of the kernel
    ARENA = "arena"  # scratch memory of the thread that runs the kernel
    STACK = "stack"  # temporary row or tile of a group
    REGISTERS = "registers"  # every access has a constant index; never touches memory
    TABLE = "table"  # constants known to the compiler; a zero is structural: the term is absent


class LoopKind(StrEnum):
    SERIAL = "for"
    PARALLEL = "parallel"
    UNROLLED = "unrolled"
    VECTOR = "vector"


class Arith(Node):
    """Operator sugar shared by all expressions."""

    __slots__ = (
        "has_plain_indices",
        "known_functions",
        "known_loads",
        "known_measure",
        "known_names",
        "known_reduction",
        "known_variables",
    )
    has_plain_indices: bool  # the indices of all loads inside are in normal form
    known_functions: frozenset[str]  # this and the next five are caches of `aot.codegen.ir.expressions`
    known_loads: tuple[Load, ...]
    known_measure: tuple[int, int]
    known_names: frozenset[str]
    known_reduction: Reduce | None
    known_variables: frozenset[Var]

    @property
    def children(self) -> tuple[Expr, ...]:
        """Return the expressions that this one is made of; none for numbers and variables."""
        return ()

    def __add__(self, other: Operand) -> Expr:
        return prim("add", self, other)

    def __radd__(self, other: Operand) -> Expr:
        return prim("add", other, self)

    def __sub__(self, other: Operand) -> Expr:
        return prim("sub", self, other)

    def __rsub__(self, other: Operand) -> Expr:
        return prim("sub", other, self)

    def __mul__(self, other: Operand) -> Expr:
        return prim("mul", self, other)

    def __rmul__(self, other: Operand) -> Expr:
        return prim("mul", other, self)

    def __truediv__(self, other: Operand) -> Expr:
        return prim("div", self, other)

    def __rtruediv__(self, other: Operand) -> Expr:
        return prim("div", other, self)

    def __floordiv__(self, other: Operand) -> Expr:
        return prim("floordiv", self, other)

    def __rfloordiv__(self, other: Operand) -> Expr:
        return prim("floordiv", other, self)

    def __mod__(self, other: Operand) -> Expr:
        return prim("mod", self, other)

    def __rmod__(self, other: Operand) -> Expr:
        return prim("mod", other, self)

    def __neg__(self) -> Expr:
        return prim("neg", self)


@node
class Const(Arith):
    """A number of a compute type; booleans are `Const(1, BOOL)` and `Const(0, BOOL)`."""

    value: float
    dtype: DType = DType.I64

    def __eq__(self, other: object) -> bool:
        if self is other or type(other) is not Const:
            return self is other
        return self.dtype is other.dtype and self._digits() == other._digits()

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            self._hash = hash((Const, self._digits(), self.dtype))
            return self._hash

    def _digits(self) -> int | str:
        """Return a key of the number: 0.0 and -0.0 differ, and NaN equals itself."""
        return self.value if isinstance(self.value, int) else repr(self.value)


@node
class Var(Arith):
    """An integer, `low <= var < extent`. The extent of a dynamic size is None or an upper bound, excluded.

    `typical`: value of a dynamic size by which schedules are chosen; it affects nothing else.
    """

    name: str
    extent: Size | None = None
    low: int = 0
    typical: int = 64

    def __eq__(self, other: object) -> bool:
        # A fast path: variables are the keys of every environment, and compared more often than all other nodes.
        if self is other or type(other) is not Var:
            return self is other
        alike = self.name == other.name and self.low == other.low and self.typical == other.typical
        return alike and (self.extent is other.extent or self.extent == other.extent)

    __hash__ = Node.__hash__

    @property
    def dtype(self) -> DType:
        return DType.I64


@node
class Load(Arith):
    """`buffer[index]`, as a number of the compute type of the buffer's storage type."""

    buffer: Buffer
    index: tuple[Expr, ...]

    @property
    def dtype(self) -> DType:
        return self.buffer.dtype.compute


@node
class Prim(Arith):
    """A scalar primitive, one of `PRIMS`."""

    fn: str
    args: tuple[Expr, ...]
    dtype: DType


@node
class Reduce(Arith):
    """`fn`-reduction (add, mul, max, min, and, or) of `body` over `axes`, in any order, from `init` or the identity.

    `CHAINS` is a sum in an order of its own: `aot.codegen.ir.numbers.bf16_chains`.
    """

    fn: str
    axes: tuple[Var, ...]
    body: Expr
    init: Expr | None = None

    @property
    def dtype(self) -> DType:
        return self.body.dtype

    @property
    def children(self) -> tuple[Expr, ...]:
        return (self.body,) if self.init is None else (self.body, self.init)


# The same slots by another name, without a call: walks ask for nothing more often.
Prim.children, Load.children = vars(Prim)["args"], vars(Load)["index"]

Expr = Const | Var | Load | Prim | Reduce
_EXPRS = (Const, Var, Load, Prim, Reduce)  # a tuple is faster to test than a union
Size = int | Expr
Operand = Arith | float | int


class Shaped(Node):
    """Base of buffers, with the slot of a cache of `aot.lowering.ir.steps`."""

    __slots__ = ("known_sizes",)
    known_sizes: frozenset[Var]


@node
class Buffer(Shaped):
    """Memory with strides, in elements.

    `origin` is the offset of element [0, 0, ...]: negative indices address a halo, whose elements are all `halo`.
    `start` is the first index that is stored: a temp that shrinks to the current tile keeps its indices.
    """

    name: str
    shape: tuple[Size, ...]
    strides: tuple[Size, ...]
    space: Space = Space.ARG
    origin: Size = 0
    align: int = 64
    dtype: DType = DType.F32
    values: tuple[float, ...] = ()
    start: tuple[Expr, ...] = ()
    halo: float | None = None

    def __getitem__(self, index: Operand | tuple[Operand, ...]) -> Load:
        parts = index if isinstance(index, tuple) else (index,)
        if len(parts) != len(self.shape):
            raise ValueError(f"{self.name}: {len(self.shape)} dimensions, got {len(parts)} indices")
        return Load(self, tuple(as_expr(i, DType.I64) for i in parts))


class Statement(Node):
    """Base of statements, with the slots of caches of `aot.codegen.llvm.emit.registers`."""

    __slots__ = ("known_accessed", "known_stored")
    known_accessed: frozenset[Buffer]
    known_stored: frozenset[str]


@node
class Store(Statement):
    """`buffer[index] = value`, or with `accumulate` the reduction of the element with `value`."""

    buffer: Buffer
    index: tuple[Expr, ...]
    value: Expr
    accumulate: str | None = None


@node
class Prefetch(Statement):
    """Prefetch of the cache line of `buffer[index]`; changes no result, and the index may be out of bounds."""

    buffer: Buffer
    index: tuple[Expr, ...]
    ahead: int = 0  # prefetch distance: elements added to that address
    least: int = 0  # units of a call from which on `ahead` applies; with fewer, the distance is 0
    level: int = 1  # cache that is filled: 1 for L1, 2 for L2


@node
class TileOp(Statement):
    """An instruction on tile registers, which hold up to 16 rows of 64 bytes.

    `configure`: `shape` is the rows and the bytes of a row of each tile, from tile 0 on; it holds for the statements
    that run next. `release` ends it. `zero`, `load` and `store` take one tile; rows of memory begin at `buffer[index]`
    and lie `stride` elements apart. `dot` takes three: the first becomes itself + second * third.
    """

    op: str
    tiles: tuple[int, ...] = ()
    buffer: Buffer | None = None
    index: tuple[Expr, ...] = ()
    stride: Size = 0
    shape: tuple[tuple[int, int], ...] = ()
    kind: str = ""  # of `dot`: types of the factors, `bf16`, `u8i8` or `i8u8`


@node
class For(Statement):
    """A loop. A vector loop has steps of `lanes` and ever shorter vectors for the rest: 36 by 8 is 4 of 8, 1 of 4."""

    var: Var
    body: tuple[Stmt, ...]
    kind: LoopKind = LoopKind.SERIAL
    lanes: int = 1


@node
class While(Statement):
    """Repeats `body` while `condition` holds; the condition reads memory, so it is evaluated before each iteration."""

    condition: Expr
    body: tuple[Stmt, ...]


@node
class Let(Statement):
    """Names an index, so that tiling adds lines and leaves the maths below alone."""

    var: Var
    value: Expr
    body: tuple[Stmt, ...]


@node
class Alloc(Statement):
    buffer: Buffer
    body: tuple[Stmt, ...]


@node
class If(Statement):
    """Runs `body` if `condition` holds, else `otherwise`; a bound `i < n` is free if the ranges of loops decide it."""

    condition: Expr
    body: tuple[Stmt, ...]
    otherwise: tuple[Stmt, ...] = ()


Stmt = Store | Prefetch | TileOp | For | While | Let | Alloc | If


@node
class Kernel(Node):
    """A function. Parameters: pointers to `buffers`, which are ARG buffers in order, then dynamic `sizes`."""

    name: str
    sizes: tuple[Var, ...]
    buffers: tuple[Buffer, ...]
    body: tuple[Stmt, ...]

    def named(self, name: str) -> Kernel:
        """Return the kernel with another name."""
        return Kernel(name, self.sizes, self.buffers, self.body)


def dense(
    name: str,
    *shape: Size,
    space: Space = Space.ARG,
    dtype: DType = DType.F32,
    pitch: int = 0,
    values: tuple[float, ...] = (),
) -> Buffer:
    """Return a row-major buffer; `pitch` elements are added to the outermost stride."""
    strides: list[Size] = []
    stride: Size = 1
    for n in reversed(shape):
        strides.insert(0, stride)
        stride = n * stride
    if pitch and strides:
        strides[0] = strides[0] + pitch
    return Buffer(name, shape, tuple(strides), space, dtype=dtype, values=values)


def as_expr(x: Operand, like: DType) -> Expr:
    if isinstance(x, _EXPRS):
        return x
    if isinstance(x, Arith):
        raise TypeError(f"not an expression: {x!r}")
    return Const(float(x) if like.is_float else int(x), like)


def prim(fn: str, *args: Operand, dtype: DType | None = None) -> Expr:
    """Build a primitive; plain numbers take the type of the first expression. Integer identities are folded."""
    if fn not in PRIMS:
        raise ValueError(f"no primitive {fn!r}")
    candidates = args[1:] if fn == "select" else args[2:] if fn == "within" else args
    like = DType.I64
    for a in candidates:
        if isinstance(a, _EXPRS):
            like = a.dtype
            break
    if fn == "within":
        exprs = tuple(as_expr(a, DType.I64 if i < 2 else like) for i, a in enumerate(args))
    else:
        exprs = tuple([a if isinstance(a, _EXPRS) else as_expr(a, like) for a in args])
    if not like.is_float and (folded := _fold(fn, exprs, like)) is not None:
        return folded
    return Prim(fn, exprs, dtype or (DType.BOOL if fn in COMPARISONS else like))


def with_args(node: Prim, args: tuple[Expr, ...]) -> Expr:
    """Return the primitive with other operands of the same types. Integer identities are folded."""
    if node.fn in _FOLDED and not (like := args[0].dtype).is_float:
        folded = _fold(node.fn, args, like)
        if folded is not None:
            return folded
    return Prim(node.fn, args, node.dtype)


def _fold(fn: str, args: tuple[Expr, ...], like: DType) -> Expr | None:
    if fn not in _FOLDED or Const not in map(type, args):
        return None
    match fn, args:
        case "add", (Const(0), e) | (e, Const(0)):
            return e
        case "mul", (Const(1), e) | (e, Const(1)):
            return e
        case ("sub", (e, Const(0))) | ("floordiv", (e, Const(1))):
            return e
        case "mul", (Const(0), _) | (_, Const(0)):
            return Const(0, like)
        case "mod", (_, Const(1)):
            return Const(0, like)
        case (("add" | "sub" | "mul" | "floordiv" | "mod" | "min" | "max"), (Const(a), Const(b))) if (
            like is DType.I64 and (b or fn not in ("floordiv", "mod"))
        ):
            return Const(_INTEGER[fn](int(a), int(b)))
        case _:
            return None


_FOLDED = frozenset(("add", "sub", "mul", "floordiv", "mod", "min", "max"))
_INTEGER: dict[str, Callable[[int, int], int]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "mod": operator.mod,
    "floordiv": lambda a, b: a // b,
    "min": min,
    "max": max,
}


def select(condition: Expr, yes: Operand, no: Operand) -> Expr:
    return prim("select", condition, yes, no)


def cast(x: Operand, dtype: DType) -> Expr:
    """Convert `x` to `dtype` (a storage type is first replaced by its compute type)."""
    dtype = dtype.compute
    x = as_expr(x, dtype)
    return x if x.dtype is dtype else Prim("cast", (x,), dtype)
