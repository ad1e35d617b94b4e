"""Operations: attributes, inference, a NumPy reference, and exactly one form that implements it.

ComputeOp      compute(out, *inputs) -> index -> Expr   one element of the output, at most one Reduce
ViewOp         pieces(outs, *inputs) -> Piece, ...      data movement: an index map for each box of an output
DecomposedOp   decompose(build, *ports) -> ports        simpler operations
LoopOp         nest(outs, *inputs) -> work              definitions, groups or statements written by hand
RegionOp                                                sub-graphs
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar
from zlib import crc32

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.definition import Definition, Group
from aot.codegen.ir.loops import Buffer, Expr, Stmt, Var
from aot.ir.conditions import Condition
from aot.ir.operand import Operand, Piece, has_symbols
from aot.ir.types import Array, Dim, TensorType
from aot.runtime.abi import DType
from aot.runtime.errors import InternalError

Element = Callable[..., Expr]
Work = Definition | Group | tuple[Stmt, ...]


class Elements(StrEnum):
    """Element types that an operation accepts in its first input, the data."""

    ANY = "any"
    NUMBER = "number"
    FLOAT = "float"
    INTEGER = "integer"
    BOOLEAN = "boolean"
    BITS = "integer, boolean"

    def includes(self, dtype: DType) -> bool:
        """True if the type is one of these."""
        match self:
            case Elements.ANY:
                return True
            case Elements.NUMBER:
                return dtype not in (DType.BOOL, DType.STRING)
            case Elements.FLOAT:
                return dtype.is_float
            case Elements.INTEGER:
                return dtype.is_integer and dtype is not DType.BOOL
            case Elements.BOOLEAN:
                return dtype is DType.BOOL
            case Elements.BITS:
                return dtype.is_integer or dtype is DType.BOOL


@dataclass(frozen=True)
class Op:
    """Base of all operations: frozen values with fields as attributes."""

    type: ClassVar[str] = ""
    xml_type: ClassVar[str] = ""
    opset: ClassVar[str] = ""  # the first operation set that has this definition
    stands_for: ClassVar[str] = ""  # the user's operation that an internal one is derived from
    symbolic: ClassVar[bool] = False  # `fold` may compute with symbolic dimensions
    moved: ClassVar[tuple[int, ...] | None] = None  # inputs of a symbolic operation that may hold symbols (None: all)
    elements: ClassVar[Elements] = Elements.ANY
    single: ClassVar[bool] = False  # computes in f32: f64 inputs are converted, and its results back
    uniform: ClassVar[tuple[int, ...]] = ()  # indices of inputs that must have one element type
    arity: ClassVar[tuple[int, int] | None] = None  # least and greatest number of inputs, if no method lists them
    pure: ClassVar[bool] = True  # False: state or randomness; such nodes are never folded, merged or copied

    if TYPE_CHECKING:  # each operation names its own inputs: parameters of any names and types override these

        def infer(self, *operands: Any, **named: Any) -> TensorType | tuple[TensorType, ...]: ...
        def reference(self, *arrays: Any, **named: Any) -> Any: ...

    def outputs(self, *operands: Operand | None) -> tuple[TensorType, ...]:
        """Return the types of the outputs: `infer`, always as a tuple."""
        types = self.infer(*operands)
        return types if isinstance(types, tuple) else (types,)

    def fold(self, *operands: Operand | None) -> tuple[Array, ...] | None:
        """Return the outputs' values if the inputs' values are known."""
        if not self.pure or not operands or any(o is not None and o.value is None for o in operands):
            return None
        values = [None if o is None else o.value for o in operands]
        if has_symbols(*operands):
            where = range(len(operands)) if self.moved is None else self.moved
            if not self.symbolic or any(has_symbols(o) and i not in where for i, o in enumerate(operands)):
                return None
            if self.moved is not None:  # symbols of one can then be written into another
                values = [v.astype(object) if v is not None and i in where else v for i, v in enumerate(values)]
            # one number taken from an array of objects comes as Python's; objects get the output's type later
            results = self.evaluate(*values)
            return tuple(v.astype(object) if v.dtype.kind in "iu" else v for v in results)
        return self.evaluate(*values)

    def conditions(self, *operands: Any, **named: Any) -> Sequence[Condition]:
        """Return conditions on the inputs: checked by inference where sizes are known, else at run time."""
        return ()

    def written_out(self) -> Op:
        """Return the operation as files spell it: lists that may be short or absent here are written in full."""
        return self

    @property
    def user_type(self) -> str:
        """The type of the user's operation, for errors."""
        return self.stands_for or self.type

    @property
    def own_layer(self) -> tuple[str, str, dict[str, str]] | None:
        """Type, version and attributes in files, of an operation that no table has; None for all others."""
        return None

    @property
    def ways(self) -> str:
        """The next step for an operation that cannot be compiled, for errors."""
        return ""

    def has_jumps(self, result: DType) -> bool:
        """True if a small change of an input may change a result of type `result` abruptly, as in a comparison."""
        return False

    def evaluate(self, *arrays: Array | None) -> tuple[Array, ...]:
        """Return the outputs' values: `reference`, always as a tuple."""
        results: Array | tuple[Array, ...] = self.reference(*arrays)
        return tuple(map(np.asarray, results)) if isinstance(results, tuple) else (np.asarray(results),)


@dataclass(frozen=True)
class ComputeOp(Op):
    """`compute(out, *inputs)` gives the function from the output's index to its element."""

    if TYPE_CHECKING:

        def compute(self, out: TensorType, *inputs: Any, **named: Any) -> Element: ...


@dataclass(frozen=True)
class ViewOp(Op):
    """`pieces(outs, *operands)`: boxes that cover the outputs without overlap, each a map of indices into one input."""

    symbolic: ClassVar[bool] = True

    if TYPE_CHECKING:

        def pieces(self, outs: tuple[TensorType, ...], *operands: Any, **named: Any) -> tuple[Piece, ...]: ...


@dataclass(frozen=True)
class DecomposedOp(Op):
    """`decompose(build, *ports)` gives ports of simpler operations that mean the same."""

    if TYPE_CHECKING:

        def decompose(self, build: Any, *ports: Any, **named: Any) -> Any: ...


@dataclass(frozen=True)
class LoopOp(Op):
    """`nest(outs, *inputs)` gives the works to run, in order, written by hand."""

    if TYPE_CHECKING:

        def nest(self, outs: tuple[Buffer, ...], *inputs: Any, **named: Any) -> tuple[Work, ...]: ...

    def has_jumps(self, result: DType) -> bool:
        return True  # algorithms choose by their data: sorting, suppression, nearest samples


@dataclass(frozen=True)
class RegionOp(Op):
    """Holds sub-graphs; the node keeps them in `regions`."""


@dataclass(frozen=True)
class Stateful(Op):
    """Reads or sets a variable: its value is not known at compile time, whatever the inputs are."""

    pure: ClassVar[bool] = False

    variable_id: str = ""

    def access(self, now: Mapping[str, Array], later: dict[str, Array], *arrays: Array | None) -> Array:
        """Compute the outputs: read variables from `now`, and set them in `later`."""
        raise InternalError(f"{self.type}: says how it reads and sets variables")


@dataclass(frozen=True)
class Foreign(Op):
    """An operation of another framework: known by name only, until a front pass replaces it."""

    dialect: str = ""
    kind: str = ""
    attrs: tuple[tuple[str, Any], ...] = ()
    types: tuple[TensorType, ...] = ()

    def infer(self, *operands: Operand | None) -> tuple[TensorType, ...]:
        return self.types


def late_symbol(op: Op, what: str, most: Dim | None, *operands: Operand | None) -> Var:
    """Return a symbol for a size that an operation computes from data, 0..most; its decomposition computes it."""
    labels = [o.source.label for o in operands if o is not None and o.source is not None]
    name = ".".join(["v" + "_".join(labels), f"{op.type}{crc32(repr(op).encode()) & 0xFFFF}", what])
    return Var(name, most + 1 if isinstance(most, int) else None)


FORMS: tuple[type[Op], ...] = (ComputeOp, ViewOp, DecomposedOp, LoopOp, RegionOp)


def op_form(cls: type[Op]) -> str:
    """Return the name of an operation's form; `graph` for operations that only structure a graph."""
    return next((form.__name__ for form in FORMS if issubclass(cls, form)), "graph")
