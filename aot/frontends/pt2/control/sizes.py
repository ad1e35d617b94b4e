"""Sizes of tensors, arithmetic of them, and numbers read from tensors."""

from __future__ import annotations

from aot.frontends.conversion.table import renames
from aot.frontends.pt2.registry import AtenNode, Number, aten
from aot.ir.graph import OutPort
from aot.opset.elementwise.unary import Rounding
from aot.runtime.abi import DType

ARITHMETIC = renames(
    """
    _operator.add=Add _operator.sub=Subtract _operator.mul=Multiply _operator.pow=Power _operator.and_=LogicalAnd
    _operator.or_=LogicalOr torch.sym_max=Maximum torch.sym_min=Minimum torch.sym_sum=Add
    """
)
COMPARISONS = renames(
    """
    _operator.eq=Equal _operator.ne=NotEqual _operator.lt=Less _operator.le=LessEqual _operator.gt=Greater
    _operator.ge=GreaterEqual
    """
)
ROUNDINGS = {"math.floor": "Floor", "math.ceil": "Ceiling"}


@aten("sym_size.int")
def sym_size(node: AtenNode, x: OutPort, dim: int) -> OutPort:
    return node.size(x, node.axis(dim, x.type.rank))


@aten("sym_numel.default", "numel.default")
def sym_numel(node: AtenNode, x: OutPort) -> OutPort:
    return node.build.ReduceProd(node.dims(x, range(x.type.rank)), node.list([0])) if x.type.rank else node.scalar(1)


@aten(*ARITHMETIC)
def arithmetic(node: AtenNode, a: Number, b: Number) -> OutPort:
    return getattr(node.build, ARITHMETIC[node.kind])(node.port(a, node.dtype()), node.port(b, node.dtype()))


@aten(*COMPARISONS)
def comparison(node: AtenNode, a: Number, b: Number) -> OutPort:
    return getattr(node.build, COMPARISONS[node.kind])(*_alike(node, a, b))


def _alike(node: AtenNode, a: Number, b: Number) -> tuple[OutPort, OutPort]:
    """Return both numbers in one type: integers, or floats of 64 bits."""
    x, y = node.port(a), node.port(b)
    floats = x.type.dtype.is_float or y.type.dtype.is_float
    dtype = DType.F64 if floats else DType.I64
    return node.port(a, dtype), node.port(b, dtype)


@aten("_operator.floordiv", "_operator.mod")
def floor_division(node: AtenNode, a: Number, b: Number) -> OutPort:
    """The remainder has the sign of the divisor."""
    build = node.build
    x, y = _alike(node, a, b)
    if node.kind.endswith("mod"):
        return build.FloorMod(x, y)
    return build.Floor(build.Divide(x, y)) if x.type.dtype.is_float else build.Divide(x, y, m_pythondiv=True)


@aten("_operator.truediv")
def true_division(node: AtenNode, a: Number, b: Number) -> OutPort:
    return node.build.Divide(node.port(a, DType.F64), node.port(b, DType.F64))


@aten("_operator.neg", "_operator.abs")
def negation(node: AtenNode, a: Number) -> OutPort:
    name = "Negative" if node.kind.endswith("neg") else "Abs"
    return getattr(node.build, name)(node.port(a, node.dtype()))


@aten("torch.sym_not", "_operator.not_")
def sym_not(node: AtenNode, a: Number) -> OutPort:
    return node.build.LogicalNot(node.port(a, DType.BOOL))


@aten("torch.sym_float", "torch.sym_int")
def converted(node: AtenNode, a: Number) -> OutPort:
    return node.port(a, node.dtype())


@aten("torch.sym_ite")
def sym_ite(node: AtenNode, b: Number, t: Number, f: Number) -> OutPort:
    condition = node.port(b, DType.BOOL)
    return node.build.Select(condition, node.port(t, node.dtype()), node.port(f, node.dtype()))


@aten("math.floor", "math.ceil", "math.trunc", "builtins.round")
def rounded(node: AtenNode, x: Number) -> OutPort:
    """The integer; `round` takes halves to even numbers."""
    build, value = node.build, node.port(x, DType.F64)
    if node.kind in ROUNDINGS:
        value = getattr(build, ROUNDINGS[node.kind])(value)
    elif node.kind == "builtins.round":
        value = build.Round(value, mode=Rounding.HALF_TO_EVEN)
    return node.cast(value, DType.I64)


@aten("torch._sym_sqrt")
def sym_sqrt(node: AtenNode, a: Number) -> OutPort:
    return node.build.Sqrt(node.port(a, DType.F64))


@aten("item.default", "_local_scalar_dense.default")
def item(node: AtenNode, x: OutPort) -> OutPort:
    """The one element of a tensor as a number."""
    return node.single(x)


@aten("sym_stride.int")
def sym_stride(node: AtenNode, x: OutPort, dim: int) -> OutPort:
    """The stride of a tensor without gaps, the last axis innermost."""
    inner = range(node.axis(dim, x.type.rank) + 1, x.type.rank)
    return node.build.ReduceProd(node.dims(x, inner), node.list([0])) if inner else node.scalar(1)


@aten("sym_storage_offset.default", "sym_is_contiguous.default")
def storage(node: AtenNode, x: OutPort) -> OutPort:
    return node.port(0 if "offset" in node.kind else 1, node.dtype())
