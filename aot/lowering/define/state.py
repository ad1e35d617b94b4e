"""Variables that a request keeps. Each has a flag that is 1 once it was set; they are written last in an inference.

    state of a request     flag of v0 | v0 | flag, offset, sizes of v1 | ... | v1     zeros at first and after a reset
    ReadValue              v[i] = flag ? state[i] : initial[i]
    Assign                 state[i] = x[i]; flag = 1             last of all, by statements that nothing merges into

Variables of dynamic size are packed after all static ones; their total size is a late size with a capacity. If they
need more bytes than that, `infer` ends and asks for more memory before anything is written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.access import volume
from aot.codegen.ir.definition import Definition
from aot.codegen.ir.loops import Buffer, Const, Expr, For, If, Load, Size, Stmt, Store, Var, as_expr, prim, select
from aot.codegen.ir.program import StateVariable
from aot.ir.graph import Node
from aot.ir.op import Stateful
from aot.ir.operand import Input
from aot.ir.types import Shape, TensorType, differs
from aot.lowering.ir.steps import indices
from aot.lowering.ir.symbolic_sizes import Sizes
from aot.opset.control.state import DYNAMIC, Carried, IsSet, KeptSizes, KeptValue
from aot.runtime.abi import DType
from aot.runtime.errors import InternalError, ModelError

LINE_BYTES = 64  # bytes of a cache line: each variable begins at one
ENTRY_BYTES = 8  # bytes of a flag, an offset or a size
BYTES = Var("variables.bytes", None, 0)  # bytes of the variables of dynamic size together


class Variables:
    """The variables of a model by their ids."""

    def __init__(self) -> None:
        self.known: dict[str, StateVariable] = {}
        self.bytes = 0  # bytes of the variables of static size together

    @property
    def varying(self) -> list[StateVariable]:
        return [v for v in self.known.values() if DYNAMIC in v.shape]

    def of(self, node: Node) -> StateVariable:
        """Return the variable that a node reads or sets."""
        op = node.op
        if not isinstance(op, Stateful):
            raise InternalError(f"{node.type}: reads or sets no variable")
        id, type = op.variable_id, node.out_port(0).type
        carried = isinstance(op, Carried)
        dtype, shape = (op.element_type, op.dims) if carried else (type.dtype, type.static_shape)
        if id not in self.known:
            self.known[id] = self._placed(id, dtype, shape)
        if (self.known[id].dtype, self.known[id].shape) != (dtype, shape) or not _holds(self.known[id], op, type):
            raise ModelError(f"{node.type}: variable {id!r} is {_text(self.known[id])}, got {type}")
        return self.known[id]

    def _placed(self, id: str, dtype: DType, shape: tuple[int, ...]) -> StateVariable:
        flag, varies = self.bytes, DYNAMIC in shape
        head = -(-(2 + len(shape)) * ENTRY_BYTES // LINE_BYTES) * LINE_BYTES if varies else LINE_BYTES
        data = flag + head
        self.bytes = data if varies else data + room(TensorType(dtype, shape).static_shape, dtype)
        return StateVariable(id, dtype, shape, flag, None if varies else data)


def room(shape: Sequence[int], dtype: DType) -> int:
    """Return the bytes of an array, rounded up to cache lines, and one line more.

    Vectors at the end may read past it.
    """
    return -(-(prod(shape) * dtype.stored_bytes + LINE_BYTES) // LINE_BYTES) * LINE_BYTES


@dataclass(frozen=True, slots=True)
class State:
    """Reads and sets variables. `part`: a buffer over a part of the state, from a byte on, called after a node."""

    variables: Variables
    sizes: Sizes
    part: Callable[[Node, Size, Shape, DType], Buffer]

    def read(self, node: Node, out: Buffer, initial: Input | None) -> Definition:
        """Define ReadValue, or one of the operations that the pass splits it into."""
        variable, (axes, at) = self.variables.of(node), indices(out.shape)
        match node.op:
            case IsSet():
                value: Expr = self._is_set(node, variable)
            case KeptSizes():
                value = Load(self.part(node, variable.flag + ENTRY_BYTES, out.shape, DType.I64), at)
            case KeptValue():
                offset = variable.data if variable.data is not None else node.input().dims("KeptValue: sizes")[0]
                value = Load(self.part(node, offset, out.shape, variable.dtype), at)
            case _:
                assert variable.data is not None
                stored = Load(self.part(node, variable.data, out.shape, variable.dtype), at)
                nothing = Const(0.0 if stored.dtype.is_float else 0, stored.dtype)
                value = select(self._is_set(node, variable), stored, nothing if initial is None else initial(*at))
        return Definition(out, axes, value, at)

    def _is_set(self, node: Node, variable: StateVariable) -> Expr:
        return prim("ne", Load(self.part(node, variable.flag, (1,), DType.I64), (Const(0),)), 0)

    def ends(self, nodes: Sequence[Node]) -> tuple[dict[str, Size], Size]:
        """Return the byte offset of each variable of dynamic size after an inference, and the end of the last one."""
        offsets: dict[str, Size] = {}
        at: Size = self.variables.bytes
        for node in nodes:
            variable, port = self.variables.of(node), node.source(0)
            if variable.data is None:
                offsets[variable.name] = at
                size = volume(self.sizes.shape(port.shape)) * variable.dtype.stored_bytes
                at = self._name_address(at + (size + (2 * LINE_BYTES - 1)) // LINE_BYTES * LINE_BYTES)
        return offsets, at

    def _name_address(self, at: Size) -> Size:
        """Name an address as a size, so that kernels that write the variables of equal layers are equal."""
        address = self.sizes.of(at)
        return address if isinstance(address, int) else self.sizes.add(address, "at")

    def write(
        self, node: Node, offsets: Mapping[str, Size], source: Buffer, condition: Expr | None
    ) -> tuple[Stmt, ...]:
        """Set a variable and its flag, where the condition holds."""
        variable = self.variables.of(node)
        offset = variable.data if variable.data is not None else offsets[variable.name]
        axes, at = indices(source.shape)
        body: tuple[Stmt, ...] = (Store(self.part(node, offset, source.shape, source.dtype), at, Load(source, at)),)
        for axis in reversed(axes):
            body = (For(axis, body),)
        entries: list[Size] = [1]
        if variable.data is None:
            entries += [
                offset,
                *(n for n, declared in zip(source.shape, variable.shape, strict=True) if declared == DYNAMIC),
            ]
        head = self.part(node, variable.flag, (len(entries),), DType.I64)
        body += tuple(Store(head, (Const(k),), as_expr(n, DType.I64)) for k, n in enumerate(entries))
        return body if condition is None else (If(condition, body),)


def store(cell: Buffer, size: Size) -> tuple[Stmt, ...]:
    """Write a size to memory."""
    return (Store(cell, (Const(0),), as_expr(size, DType.I64)),)


def _holds(variable: StateVariable, op: Stateful, type: TensorType) -> bool:
    """True if an operation may give the value of a variable."""
    if isinstance(op, IsSet | KeptSizes):
        return True
    fits = type.dtype is variable.dtype and type.rank == len(variable.shape)
    return fits and not any(n != DYNAMIC and differs(d, n) for d, n in zip(type.shape, variable.shape, strict=True))


def _text(v: StateVariable) -> str:
    return f"{v.dtype.value}[{','.join('?' if n == DYNAMIC else str(n) for n in v.shape)}]"
