"""Inference of a node's outputs from its inputs: types, shapes, values.

Types, and small values too, because shapes depend on them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from inspect import Parameter, signature
from math import prod

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.loops import Var
from aot.ir.op import Elements, Foreign, Op, RegionOp
from aot.ir.operand import Operand, Source
from aot.ir.types import Array, TensorType, dtype_of
from aot.ir.values.deferred import Deferred
from aot.ir.values.estimate import is_quick
from aot.ir.values.symbolic import as_stored
from aot.runtime.abi import DType
from aot.runtime.errors import AotError, BudgetError, InternalError, ModelError, ShapeError

Named = tuple[Array | None, bool]  # symbols for a value; True if they stand for its own elements
MAX_ELEMENTS = 1 << 48
MAX_FOLD_ELEMENTS = 1 << 16  # elements of a value that inference computes; larger values are folded by the pass
# Errors of references for inputs without a defined result, which are left to compiled code.
UNDEFINED_RESULTS = (ArithmeticError, LookupError, MemoryError, ValueError)
MAX_SYMBOLS = 64  # elements at most of a value that symbols stand for


def constant_output(op: Op, data: Array | Deferred, source: Source) -> Operand:
    """Return the output of a constant; a deferred value stays unknown."""
    if isinstance(data, Deferred):
        return Operand(data.type, None, source)
    declared = getattr(op, "element_type", None)
    return Operand(TensorType(declared if isinstance(declared, DType) else dtype_of(data), data.shape), data, source)


def infer_outputs(
    op: Op,
    inputs: Sequence[Operand | None],
    regions: Mapping[str, object],
    sources: Sequence[Source] | None = None,
) -> tuple[Operand, ...]:
    """Return the outputs of an operation: one for each of `sources`, or any number. AotError if inputs do not fit."""
    name = op.kind if isinstance(op, Foreign) else op.user_type
    _check_count(type(op), len(inputs), name)
    for i, operand in enumerate(inputs):
        if operand is None and i in _required(type(op), len(inputs)):
            raise ModelError(f"{name}: input {i} is not connected")
    _check_elements(op, inputs, name)
    try:
        types = op.outputs(*inputs, *([regions] if regions else []))  # type: ignore[list-item]
        if sources is not None and len(types) != len(sources):
            raise ModelError(f"{name}: {len(types)} outputs, the node has {len(sources)}")
        for t in types:
            _check_size(name, t)
        for a, b, rule in op.conditions(*inputs):
            if isinstance(a, int) and isinstance(b, int) and a != b:
                raise ShapeError(f"{name}: {rule}, got {a} and {b}")
        values = [None] * len(types) if regions else _values(op, inputs, types)
        return tuple(map(Operand, types, values, sources or [None] * len(types)))
    except AotError:
        raise
    except Exception as error:
        raise _explained(error, name, inputs) from error


def _explained(error: Exception, name: str, inputs: Sequence[Operand | None]) -> AotError:
    """Return the error with an explanation, as far as the inputs give one."""
    match error:
        case TypeError() if "argument" in str(error):
            return ShapeError(f"{name}: {len(inputs)} inputs do not fit it ({error})")
        case RecursionError():
            return BudgetError(f"{name}: dynamic sizes are combined too often")
        case MemoryError():
            return BudgetError(f"{name}: inference needs more memory than there is{': ' if str(error) else ''}{error}")
        case ArithmeticError() | IndexError() | ValueError():  # a dimension that does not exist, a size of 0
            types = ", ".join("nothing" if i is None else str(i.type) for i in inputs)
            return ShapeError(f"{name}: ranks, sizes or values of the inputs do not fit it, got {types}")
        case _:
            return InternalError(f"{name}: inference failed: {error!r}")


def _check_size(name: str, type: TensorType) -> None:
    """Raise BudgetError for a tensor that no memory holds."""
    if type.is_static and prod(filter(None, type.static_shape)) > MAX_ELEMENTS:
        raise BudgetError(f"{name}: a tensor can have at most {MAX_ELEMENTS} elements, got {type}")


def _check_elements(op: Op, inputs: Sequence[Operand | None], name: str) -> None:
    """Raise ModelError if the data, the first input, has an element type that the operation does not accept."""
    data = inputs[0] if inputs else None
    if data is not None and op.elements is not Elements.ANY and not op.elements.includes(data.dtype):
        raise ModelError(f"{name}: elements must be of type {op.elements.value}, got {data.dtype.value}")
    alike = [o.dtype for i, o in enumerate(inputs) if o is not None and i in op.uniform] if op.uniform else []
    if len(set(alike)) > 1:
        raise ShapeError(f"{name}: element types must be equal, got {', '.join(t.value for t in alike)}")


def _check_count(cls: type[Op], count: int, name: str) -> None:
    """Raise ModelError for fewer or more inputs than the operation has."""
    least, most = arity(cls)
    if count < least or (most is not None and count > most):
        several = f"{least} to {most}" if most is not None and most > least else f"{least} or more"
        expected = str(least) if least == most else several
        raise ModelError(f"{name}: has {expected} input{'s' if expected != '1' else ''}, got {count}")


@lru_cache(maxsize=4096)
def arity(cls: type[Op]) -> tuple[int, int | None]:
    """Return the least and the greatest number of inputs (None: unbounded), as declared or by the methods."""
    if cls.arity is not None:
        return cls.arity
    if issubclass(cls, RegionOp):
        return 0, None
    least = 0
    for method in ("infer", "scalar", "reference"):
        if hasattr(cls, method):
            listed = list(signature(getattr(cls, method)).parameters.values())[1:]
            needed = sum(p.default is Parameter.empty and p.kind is not Parameter.VAR_POSITIONAL for p in listed)
            if all(p.kind is not Parameter.VAR_POSITIONAL for p in listed):
                return needed, len(listed)
            least = max(least, needed)
    return least, None


@lru_cache(maxsize=4096)
def _required(cls: type[Op], count: int) -> frozenset[int]:
    """Return the indices of the inputs that an operation requires."""
    if issubclass(cls, RegionOp):
        return frozenset()
    required: set[int] = set()
    for i, p in enumerate(list(signature(cls.infer).parameters.values())[1:]):
        if p.kind is Parameter.VAR_POSITIONAL:
            required |= set() if "None" in str(p.annotation) else set(range(i, count))
        elif p.default is Parameter.empty:
            required.add(i)
    return frozenset(required)


def _values(op: Op, inputs: Sequence[Operand | None], types: tuple[TensorType, ...]) -> Sequence[Array | None]:
    known = bool(inputs)
    for i in inputs:
        if i is not None and i.value is None:
            known = False
        elif i is not None and i.value is not None and i.value.size > MAX_FOLD_ELEMENTS:
            return [None] * len(types)
    if not known and type(op).fold is Op.fold:
        return [None] * len(types)
    for t in types:
        if not t.is_static or prod(t.static_shape) > MAX_FOLD_ELEMENTS:
            return [None] * len(types)
    try:
        with np.errstate(all="ignore"):
            values = op.fold(*inputs) if not known or is_quick(op, inputs, types) else None
    except UNDEFINED_RESULTS:
        values = None
    except TypeError:  # a symbol where a number is needed
        if not any(i is not None and i.value is not None and i.value.dtype == object for i in inputs):
            raise
        values = None
    if values is None:
        return [None] * len(types)
    return [as_stored(value, t.dtype) for value, t in zip(values, types, strict=True)]


def has_few_integers(type: TensorType) -> bool:
    """True if symbols may stand for the elements of a tensor."""
    whole = not type.dtype.is_float and type.dtype is not DType.STRING
    return whole and type.is_static and prod(type.static_shape) <= MAX_SYMBOLS


def named(name: str, type: TensorType) -> Array:
    """Return a symbol for each element of a tensor of integers."""
    low, extent = _range(type.dtype)
    symbols = np.empty(type.static_shape, object)
    for at in range(symbols.size):
        symbols.reshape(-1)[at] = Var(f"{name}_{at}" if symbols.ndim else name, extent, low)
    return symbols


def _range(dtype: DType) -> tuple[int, int | None]:
    """Return the range of an integer type; None for the upper end of a wide type, which bounds no size."""
    if dtype is DType.BOOL:
        return 0, 2
    bits = dtype.bits - (1 if dtype.is_signed else 0)
    return -(1 << bits) if dtype.is_signed else 0, (1 << bits if bits <= 16 else None)


def with_symbols(op: Op, inputs: Sequence[Operand | None], outputs: Sequence[Operand]) -> list[Array | None] | None:
    """Return the outputs' values, given inputs that hold symbols; None if they cannot be computed."""
    if not op.symbolic or any(o is not None and o.value is None for o in inputs):
        return None
    try:
        with np.errstate(all="ignore"):
            values = op.fold(*inputs)
        return None if values is None else [as_stored(v, o.dtype) for v, o in zip(values, outputs, strict=True)]
    except (AotError, IndexError, TypeError, ValueError):  # a symbol where a number is needed
        return None


def name_outputs(
    op: Op, inputs: Sequence[Operand | None], outputs: Sequence[Operand], labels: Sequence[str], mine: Sequence[bool]
) -> tuple[Named, ...]:
    """Return the values of a node's outputs with symbols: known, computed from those of the inputs, or named here.

    Operands that are not `mine` come from elsewhere: they are passed into a body.
    """
    computed = with_symbols(op, inputs, outputs) or [None] * len(outputs)
    values: list[Named] = []
    for operand, value, label, own in zip(outputs, computed, labels, mine, strict=True):
        if operand.value is not None or value is not None:
            values.append((operand.value if operand.value is not None else value, False))
        elif operand.source is not None and not own:
            values.append((operand.source.symbols(), False))
        else:
            values.append((named(label, operand.type) if has_few_integers(operand.type) else None, True))
    return tuple(values)


@dataclass(frozen=True, slots=True)
class Inferred:
    """Outputs that a node's operation had for its inputs: a change above that leaves the inputs' facts ends there."""

    op: Op
    inputs: list[Operand | None]
    outputs: tuple[Operand, ...]

    @staticmethod
    def of(op: Op, inputs: list[Operand | None], outputs: tuple[Operand, ...]) -> Inferred | None:
        """Return the record; None if inference may have used symbols, which change although the inputs do not."""
        return None if any(map(_may_be_asked, inputs)) else Inferred(op, inputs, outputs)

    def holds_for(self, op: Op, inputs: list[Operand | None], outputs: int) -> bool:
        """True if inference would return these outputs again."""
        if op is not self.op or len(inputs) != len(self.inputs) or outputs != len(self.outputs):
            return False
        return all(self.has_input(i, operand) for i, operand in enumerate(inputs))

    def has_input(self, idx: int, operand: Operand | None) -> bool:
        """True if the same facts are known of an input."""
        before = self.inputs[idx]
        return operand is before or (operand is not None and before is not None and operand.is_same(before))


def has_other_symbols(operand: Operand, before: Operand) -> bool:
    """True if the symbols that may stand for the elements come from another value than before."""
    return operand.source is not before.source and _may_be_asked(operand)


def _may_be_asked(operand: Operand | None) -> bool:
    """True if inference may have used symbols for the value of an input: these change without its type."""
    return operand is not None and operand.value is None and has_few_integers(operand.type)
