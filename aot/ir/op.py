"""Operations: attributes, inference, a NumPy reference, and exactly one form that implements it.

ComputeOp      compute(out, *inputs) -> index -> Expr         one element of the output, at most one Reduce ViewOp
pieces(outs, *inputs) -> Piece, ...            data movement: an index map for each box of an output DecomposedOp
decompose(build, *ports) -> ports              simpler operations LoopOp         nest(outs, *inputs) -> work
definitions, groups or statements written by hand RegionOp       sub-graphs
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from enum import StrEnum
from typing import Any, ClassVar, Protocol, TypeVar, dataclass_transform
from zlib import crc32

import numpy as np

from aot.ir.scope import current, scope_for
from aot.ir.types import Array, Dim, Shape, TensorType
from aot.ir.values.symbolic import settled
from codegen.ir.definition import Definition, Group
from codegen.ir.index import bounds, normal
from codegen.ir.loops import Buffer, Expr, Load, Stmt, Var, as_expr, prim
from codegen.ir.loops import Operand as ExprLike
from runtime.abi import DType
from runtime.errors import InternalError, ShapeError, UnsupportedError

Element = Callable[..., Expr]
Condition = tuple[Dim, Dim, str]  # two sizes that must be equal, and the rule in words
T = TypeVar("T")


class Source(Protocol):
    """Origin of an operand: it names data-dependent numbers."""

    @property
    def label(self) -> str: ...

    def symbols(self) -> Array: ...


@dataclass(frozen=True, slots=True)
class Operand:
    """Inferred facts about an input: its type, and its value where that is known at compile time.

    A value of integers that holds symbolic dimensions is an array of objects. Where an operation needs a value that is
    not known, `source` gives symbols for its elements.
    """

    type: TensorType
    value: Array | None = None
    source: Source | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.value is not None and self.value.dtype == object:
            object.__setattr__(self, "value", settled(self.value, self.type.dtype))

    @property
    def dtype(self) -> DType:
        return self.type.dtype

    @property
    def shape(self) -> Shape:
        return self.type.shape

    @property
    def rank(self) -> int:
        return self.type.rank

    def ints(self, what: str) -> tuple[int, ...]:
        """Return the value as numbers; UnsupportedError if it is not known at compile time."""
        value = self.known(what)
        if value.dtype == object and any(isinstance(v, Expr) for v in value.flat):
            raise UnsupportedError(f"{what} must be known at compile time")
        return tuple(int(v) for v in value.reshape(-1))

    def dims(self, what: str) -> Shape:
        """Return the value as dimensions, which may be symbolic."""
        value = self.known(what) if self.source is None or self.value is not None else self.source.symbols()
        return tuple(v if isinstance(v, Expr) else int(v) for v in value.reshape(-1).tolist())

    def is_same(self, other: Operand) -> bool:
        """True if the same facts are known of the other operand."""
        a, b = self.value, other.value
        equal = a is b or (a is not None and b is not None and a.dtype == b.dtype and np.array_equal(a, b))
        return self.type == other.type and equal

    def known(self, what: str) -> Array:
        if self.value is None:
            raise UnsupportedError(f"{what} must be known at compile time")
        return self.value


def has_symbols(*operands: Operand | None) -> bool:
    """True if a known value holds symbolic dimensions."""
    known = ((o.value, o.dtype) for o in operands if o is not None and o.value is not None)
    return any(value.dtype == object and dtype is not DType.STRING for value, dtype in known)


@dataclass(frozen=True, slots=True)
class Input:
    """An input as `compute` and `nest` read it: `x(i, j)` is element [i, j]."""

    buffer: Buffer
    type: TensorType
    value: Array | None = None

    @property
    def dtype(self) -> DType:
        return self.type.dtype

    @property
    def shape(self) -> Shape:
        return self.type.shape

    @property
    def rank(self) -> int:
        return self.type.rank

    def __call__(self, *index: ExprLike) -> Expr:
        return Load(self.buffer, tuple(as_expr(i, DType.I64) for i in index))

    def padded(self, *index: ExprLike, fill: float = 0.0) -> Expr:
        """Return element [index], or `fill` where an index that is not a plain axis is outside the shape."""
        value = self(*index)
        for i, n in zip(index, self.shape, strict=True):
            if isinstance(i, Expr) and not _is_inside(i, n):
                value = prim("within", i, as_expr(n, DType.I64), value, fill)
        return value

    def operand(self) -> Operand:
        return Operand(self.type, self.value)


def _is_inside(index: Expr, extent: Dim) -> bool:
    if isinstance(index, Var) and index.extent == extent:
        return True
    low, high = bounds(normal(index, {}))
    return low >= 0 and isinstance(extent, int) and high < extent


@dataclass(frozen=True, slots=True)
class Piece:
    """Box `start`, `start + extent` of output `output`: element [start + i] is element [index(i)] of input `source`."""

    source: int
    start: Shape
    extent: Shape
    index: Callable[..., tuple[Expr, ...]]
    output: int = 0


Work = Definition | Group | tuple[Stmt, ...]


def attr(
    default: Any = MISSING,
    *,
    xml: str | None = None,
    since: str = "",
    before: Container[object] = (),
    only: tuple[str, object] | None = None,
) -> Any:
    """Declare an attribute with another name in XML, without a default, or extended by a later operation set.

    `since`: the set whose definition has the attribute, or allows more values. `before`: the values, besides the
    default, that older definitions allow; none if they do not have the attribute. `only`: the name and value that
    another attribute must have for files to hold this one.
    """
    metadata: dict[str, object] = {"only": only}
    if xml:
        metadata["xml"] = xml
    if since:
        metadata |= {"since": _number(since), "before": before}
    return field(metadata=metadata) if default is MISSING else field(default=default, metadata=metadata)


class Elements(StrEnum):
    """Element types that an operation accepts in its first input, the data."""

    ANY = "any"
    NUMBER = "number"
    FLOAT = "float"
    INTEGER = "integer"
    BOOLEAN = "boolean"
    BITS = "integer, boolean"

    def include(self, dtype: DType) -> bool:
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
    """Base of all operations: a frozen value whose fields are its attributes."""

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
    infer: ClassVar[Callable[..., TensorType | tuple[TensorType, ...]]]
    reference: ClassVar[Callable[..., Any]]

    def outputs(self, *operands: Operand | None) -> tuple[TensorType, ...]:
        """Return the types of the outputs: `infer`, always as a tuple."""
        types = self.infer(*operands)
        return types if isinstance(types, tuple) else (types,)

    def fold(self, *operands: Operand | None) -> tuple[Array, ...] | None:
        """Return the outputs' values if the inputs' values are known, else None."""
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
            found = self.evaluate(*values)
            return tuple(v.astype(object) if v.dtype.kind in "iu" else v for v in found)
        return self.evaluate(*values)

    def conditions(self, *operands: Operand | None) -> Sequence[Condition]:
        """Return conditions on the inputs: checked by inference where sizes are known, else at run time."""
        return ()

    def written_out(self) -> Op:
        """Return the operation as files spell it: lists that may be short or absent here are written in full."""
        return self

    @property
    def user_type(self) -> str:
        """The type of the user's operation, for errors."""
        return self.stands_for or self.type

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

    compute: ClassVar[Callable[..., Element]]


@dataclass(frozen=True)
class ViewOp(Op):
    """`pieces(outs, *operands)`: boxes that cover the outputs without overlap, each a map of indices into one input."""

    symbolic: ClassVar[bool] = True

    pieces: ClassVar[Callable[..., tuple[Piece, ...]]]


@dataclass(frozen=True)
class DecomposedOp(Op):
    """`decompose(build, *ports)` gives ports of simpler operations that mean the same."""

    decompose: ClassVar[Callable[..., Any]]


@dataclass(frozen=True)
class LoopOp(Op):
    """`nest(outs, *inputs)` gives the works to run, in order, written by hand."""

    nest: ClassVar[Callable[..., tuple[Work, ...]]]

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


def fresh(op: Op, what: str, most: Dim | None, *operands: Operand | None) -> Var:
    """Return a symbol for a size that an operation computes from data, 0..most; its decomposition computes it."""
    labels = [o.source.label for o in operands if o is not None and o.source is not None]
    name = ".".join(["v" + "_".join(labels), f"{op.type}{crc32(repr(op).encode()) & 0xFFFF}", what])
    return Var(name, most + 1 if isinstance(most, int) else None)


FORMS: tuple[type[Op], ...] = (ComputeOp, ViewOp, DecomposedOp, LoopOp, RegionOp)
EXTENSION = "extension"
REGISTRY: dict[str, type[Op]] = {}
_BY_TYPE: dict[str, dict[int, type[Op] | None]] = {}
_SETS: dict[tuple[str, str], type[Op]] = {}  # by set and type, in lower case


@dataclass_transform(frozen_default=True, field_specifiers=(attr, field))
def op(*opsets: str, type: str = "", xml: str = "") -> Callable[[type[T]], type[T]]:
    """Register an operation.

    `opsets`: the sets in which a versioned definition with this meaning was first registered; `extension`, or a name
    that the user chose, is a set of operations that OpenVINO does not have. `type`: the operation's name if the class
    has another one (`Interpolate_4`); `xml`: its spelling in IR files if that differs (`ReLU`). An operation without
    opsets is internal: passes create it, no file has it.
    """

    def register(cls: Any) -> Any:
        definition = dataclass(frozen=True)(cls)
        definition.type = type or cls.__name__
        definition.xml_type = xml or definition.type
        definition.opset = opsets[0] if opsets else ""
        scope = scope_for(cls.__module__)
        names = REGISTRY if scope is None else scope.operations
        types: dict[str, dict[int, Any]] = _BY_TYPE if scope is None else scope.types
        known = REGISTRY.get(cls.__name__, names.get(cls.__name__))
        own = not any(map(is_numbered, opsets)) and bool(opsets)
        if known is not None and not (own and known.opset == definition.opset):  # extensions may redefine their own
            raise InternalError(f"operation {cls.__name__} is registered twice")
        names[cls.__name__] = definition
        sets = _SETS if scope is None else scope.sets
        for name in opsets:
            if is_numbered(name):
                types.setdefault(definition.type.lower(), {})[_number(name)] = definition
            else:
                sets[name.lower(), definition.type.lower()] = definition
        return definition

    return register


def is_numbered(opset: str) -> bool:
    """True for the name of one of OpenVINO's sets, `opset13`."""
    return re.fullmatch(r"opset\d{1,3}", opset) is not None


def _number(opset: str) -> int:
    return int(opset.removeprefix("opset"))


def _order(opset: str) -> int:
    """Return the number of a set; 0 for sets that OpenVINO does not have, whose definitions are never extended."""
    return _number(opset) if is_numbered(opset) else 0


def absent(type_name: str, *opsets: str) -> None:
    """Declare that from these sets on a type has another, unimplemented meaning: `find` returns no older class."""
    for name in opsets:
        _BY_TYPE.setdefault(type_name.lower(), {}).setdefault(_number(name), None)


def find(type_name: str, opset: int | str) -> type[Op] | None:
    """Return the definition of a type in operation set `opset`, ignoring case, or None.

    `opset`: the number of one of OpenVINO's sets, or the name of a user's set; 0: `extension`.
    """
    if isinstance(opset, str) or opset == 0:
        key = opset.lower() if isinstance(opset, str) else EXTENSION, type_name.lower()
        return current().sets.get(key) or _SETS.get(key)
    names = {"const": "constant"}
    versions = _versions(names.get(type_name.lower(), type_name.lower()))
    fitting = [n for n in versions if n <= opset]
    return versions[max(fitting)] if fitting else None


def operation(name: str) -> type[Op] | None:
    """Return the operation class of that name, built in or of the active extensions; None if there is none."""
    return current().operations.get(name) or REGISTRY.get(name)


def _versions(type_name: str) -> Mapping[int, type[Op] | None]:
    """Return the definitions of a type by the number of their set."""
    return _BY_TYPE.get(type_name, {}) | current().types.get(type_name, {})


def opsets_of(cls: type[Op]) -> tuple[int, ...]:
    """Return the operation sets in which definitions with this meaning were first registered."""
    return tuple(sorted(n for n, definition in _versions(cls.type.lower()).items() if definition is cls))


def definition_of(op: Op) -> str | None:
    """Return the operation set whose definition an operation's attributes need; None if no set has one.

    It is the first set that has all attributes and values, if the definitions of the class differ in these
    (`attr(since=)`); else the last set, which has the widest definition.
    """
    sets = opsets_of(type(op))
    later = [f for f in attributes(op) if "since" in f.metadata]
    needed = [f.metadata["since"] for f in later if not _is_old(f, getattr(op, f.name))]
    fitting = [n for n in sets if n >= max(needed, default=0)]
    if not fitting:
        own = type(op).opset
        return own if own and not is_numbered(own) else None
    number = fitting[0] if any(f.metadata["since"] in sets for f in later) else fitting[-1]
    return f"opset{number}"


def is_written(op: Op, field: Field[Any], opset: str) -> bool:
    """True if files hold an attribute of an operation, in the definition of operation set `opset`.

    An empty list that is the default is left out, because OpenVINO reads an empty list as an explicit one.
    """
    value, only = getattr(op, field.name), field.metadata.get("only")
    known = bool(field.metadata.get("before")) or _order(opset) >= field.metadata.get("since", 0)
    return known and not (value == () == field.default) and (only is None or getattr(op, only[0]) == only[1])


def _is_old(field: Field[Any], value: object) -> bool:
    """True if the first definition allows a value of an attribute."""
    return value == field.default or value in field.metadata["before"]


def form_of(cls: type[Op]) -> str:
    """Return the name of an operation's form; `graph` for operations that only give a graph its structure."""
    return next((form.__name__ for form in FORMS if issubclass(cls, form)), "graph")


def attributes(cls: type[Op] | Op) -> tuple[Field[Any], ...]:
    return fields(cls)


def alike(rule: str, one: Iterable[Dim], other: Iterable[Dim]) -> list[Condition]:
    """Return the conditions that sizes are equal in pairs."""
    return [(a, b, rule) for a, b in zip(one, other, strict=True)]


def at_most_equal(rule: str, size: Dim, most: Dim) -> Condition:
    """Return the condition that a size is not above another one."""
    if isinstance(size, int) and isinstance(most, int):
        return size, min(size, most), rule
    return size, prim("min", as_expr(size, DType.I64), most), rule


def at_least(rule: str, size: Dim, least: int) -> Condition:
    """Return the condition that a size is not below a number."""
    return (min(size, least) if isinstance(size, int) else prim("min", size, least)), least, rule


def in_range(rule: str, size: Dim, low: Dim, high: Dim) -> Condition:
    """Return the condition that a size is `low` to `high`, both included."""
    if isinstance(size, int) and isinstance(low, int) and isinstance(high, int):
        return max(low, min(size, high)), size, rule
    return prim("max", prim("min", as_expr(size, DType.I64), high), low), size, rule


def axis_of(axis: int, rank: int, what: str) -> int:
    """Return `axis` counted from the front; ShapeError if it is out of range."""
    if not -rank <= axis < max(rank, 1):
        raise ShapeError(f"{what}: axis {axis} is out of range for rank {rank}")
    return axis + rank if axis < 0 else axis
