"""The table of conversions of PyTorch's operations.

    @aten("leaky_relu.default")
    def leaky_relu(node: AtenNode, x: OutPort, negative_slope: float = 0.01) -> OutPort:
        return node.build.PRelu(x, node.like(negative_slope, x))

Kinds are `packet.overload` for the name space aten (`add.Tensor`), `space::packet.overload` for others
(`torchvision::nms.default`), `_operator.mul` for Python's operators. A conversion gets the arguments that the archive
has, by the names of PyTorch's schema; the first one may have another name. The others have PyTorch's defaults.
Annotations say what an argument may be, and are checked:

    OutPort          a tensor               int, float, bool, str, DType, None      a constant
    Size             an int that may be known at run time only: a `Symbol`          Number: Size or float
    Sequence[..]     a list                 Any                                     anything

It returns a tensor, or a tuple for several outputs; each is converted to the element type that the archive has for it
(`node.dtype()`). Operations in place have no conversions of their own: `add_.Tensor` is `add.Tensor`, then a write.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial, reduce
from typing import Any, TypeVar, cast

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.loops import Expr
from aot.frontends.conversion.node_context import SHORT_FLOATS, CompositeTensor, Conversion, NodeContext, Outputs, Value
from aot.frontends.conversion.table import Table, decorator
from aot.frontends.onnx.registry import CONVERSIONS as ONNX_CONVERSIONS
from aot.frontends.onnx.registry import OnnxNode
from aot.frontends.pt2.files.element_types import COMPLEX
from aot.frontends.pt2.promotion import Kind, promoted_type
from aot.frontends.tf.math.complex_numbers import Complex
from aot.frontends.tf.registry import CONVERSIONS as TF_CONVERSIONS
from aot.frontends.tf.registry import TfNode
from aot.ir.graph import OutPort
from aot.runtime.abi import DType
from aot.runtime.errors import ModelError, UnsupportedError

__all__ = [
    "CONVERSIONS",
    "SHORT_FLOATS",
    "Argument",
    "AtenNode",
    "Complex",
    "Conversion",
    "Number",
    "Outputs",
    "Size",
    "Symbol",
    "Value",
    "aten",
    "aten_complex",
    "aten_node",
    "conversion_of",
    "resolved",
    "typed",
]

C = TypeVar("C", bound=Callable[..., Any])

FAMILIES = ("arrays", "control", "image", "math", "neural")  # folders of conversions
ONNX_OPSET = 22  # whose meaning conversions by ONNX's operations have
CONVERSIONS = Table("aten", __name__, FAMILIES)
# Arguments that change no number: where a tensor lies, and which library computes it. No conversion takes them.
HINTS = {
    "cudnn_enabled",
    "cudnn_enable",
    "device",
    "layout",
    "memory_format",
    "non_blocking",
    "pin_memory",
    "requires_grad",
}
OF_TENSORS = ("Tensor", "default", "Tensor_Tensor", "int")  # overloads that take a tensor where others take a number
OF_COMPLEX: dict[str, Callable[..., Any]] = {}  # functions for nodes with complex inputs


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument that is a value of the graph: input `index` of the node. `kind`: tensor, int, float, bool."""

    index: int
    kind: str = "tensor"


@dataclass(frozen=True, slots=True)
class Symbol:
    """A number that is known at run time only: a scalar tensor. `kind`: int, float, bool."""

    port: OutPort
    kind: str = "int"


Size = int | Symbol
Number = int | float | Symbol


def aten(*kinds: str) -> Callable[[C], C]:
    """Register the conversion of operations."""

    def register(function: C) -> C:
        CONVERSIONS.enter(kinds, ByName(function))
        return function

    return register


aten_node = CONVERSIONS.register  # of operations with sub-graphs: the conversion gets the inputs of the node, in order

# Registers the function for nodes with complex inputs; it gets all arguments by name, the first one by place.
aten_complex = decorator(OF_COMPLEX)


def conversion_of(kind: str) -> Conversion | None:
    """Return the conversion of an operation, of the extensions that take part or built in; None if there is none."""
    conversion = CONVERSIONS.of(kind)
    if conversion is None and kind in OF_COMPLEX:
        return of_complex_only
    packet, dot, overload = kind.partition(".")
    if conversion is None and "scalar" in overload.lower():  # a number in place of a tensor: see `_as_tensor`
        conversion = next((c for o in OF_TENSORS if (c := CONVERSIONS.of(packet + dot + o)) is not None), None)
    return conversion


@dataclass(frozen=True, slots=True)
class AtenNode(NodeContext):
    """A node of PyTorch being converted."""

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The arguments by name, with `Argument` in place of values of the graph."""
        return dict(self.attrs.get("arguments", ()))

    def dtype(self, i: int = 0) -> DType:
        """Return the element type that the archive gives output `i`."""
        types = self.attrs.get("given", ())
        if i >= len(types) or types[i] is None:
            raise ModelError(f"{self.kind}: the archive must have a type for output {i}, got none")
        return types[i]

    def port(self, value: OutPort | Number, dtype: DType | None = None) -> OutPort:
        """Return a value as a tensor, a number as a scalar; of `dtype` if it is given."""
        if isinstance(value, Symbol):
            value = value.port
        if isinstance(value, OutPort):
            return value if dtype is None else self.cast(value, dtype)
        if dtype is None:
            dtype = DType.BOOL if isinstance(value, bool) else DType.I64 if isinstance(value, int) else DType.F32
        return self.build.const(_fitting(value, dtype), dtype)

    def same(self, value: OutPort | Number, x: OutPort) -> OutPort:
        """Return a value as a tensor of the type of `x`."""
        return self.port(value, x.type.dtype)

    def promoted(self, *values: OutPort | Number, floats: bool = False) -> list[OutPort]:
        """Return values as tensors of the one type that PyTorch computes them in.

        `floats`: integers become f32, as for operations that have no integer result.
        """
        dtype = promoted_type([_kind_of(v) for v in values])
        if floats and not dtype.is_float:
            dtype = DType.F32
        return [self.port(v, dtype) for v in values]

    def real(self, x: OutPort) -> OutPort:
        """Return `x` as floats."""
        return x if x.type.dtype.is_float else self.cast(x, DType.F32)

    def wide(self, x: OutPort) -> OutPort:
        """Return `x` as f32 if it has short floats, to be rounded once at the end."""
        return self.cast(x, DType.F32) if x.type.dtype in SHORT_FLOATS else x

    def vector(self, sizes: Sequence[Size]) -> OutPort:
        """Return sizes as an i64 vector."""
        if all(isinstance(s, int) for s in sizes):
            return self.list([s for s in sizes if isinstance(s, int)])
        parts: list[OutPort] = []
        numbers: list[int] = []
        for size in sizes:
            if isinstance(size, int):
                numbers.append(size)
                continue
            if numbers:
                parts.append(self.list(numbers))
                numbers = []
            parts.append(self.build.Unsqueeze(self.cast(size.port, DType.I64), self.list([0])))
        if numbers:
            parts.append(self.list(numbers))
        return parts[0] if len(parts) == 1 else self.build.Concat(*parts, axis=0)

    def tf(self, kind: str, *inputs: Value, **attrs: Any) -> Any:
        """Convert as an operation of TensorFlow, with attributes by TensorFlow's names."""
        return self.converted_as(TfNode, TF_CONVERSIONS.of(kind), kind, inputs, attrs)

    def onnx(self, kind: str, *inputs: Value, **attrs: Any) -> Any:
        """Convert as an operation of ONNX, with attributes by ONNX's names."""
        view = partial(OnnxNode, opset=ONNX_OPSET)
        return self.converted_as(view, ONNX_CONVERSIONS.of(kind), kind, inputs, attrs)

    def operand(self, *values: OutPort | None) -> OutPort:
        """Return the one of several arguments that is given: its name depends on the operation. ModelError for none."""
        port = next((v for v in values if v is not None), None)
        if port is None:
            raise ModelError(f"{self.kind}: an operand must be given, got none")
        return port

    def axes(self, dims: int | Sequence[int] | None, rank: int) -> list[int]:
        """Axes counted from the front; all of them for none."""
        if dims is None:
            return list(range(rank))
        axes = [self.axis(d, rank) for d in ([dims] if isinstance(dims, int) else dims) if rank or d in (0, -1)]
        if len(set(axes)) != len(axes):
            raise ModelError(f"{self.kind}: axes must differ, got {list(axes)}")
        return axes if rank else []

    def chain(self, operation: str, values: Sequence[OutPort]) -> OutPort:
        """Return the result of an operation of two inputs over all values, from the left."""
        return reduce(getattr(self.build, operation), values)


def _kind_of(value: OutPort | Number) -> Kind:
    """Return the type of a value, and whether it is a number, a scalar or has axes."""
    if isinstance(value, OutPort):
        return Kind(value.type.dtype, 1 if value.type.rank else 0)
    if isinstance(value, Symbol):
        return Kind({"int": DType.I64, "float": DType.F32, "bool": DType.BOOL}[value.kind], -1)
    return Kind(DType.BOOL if isinstance(value, bool) else DType.I64 if isinstance(value, int) else DType.F32, -1)


def _fitting(value: float | bool, dtype: DType) -> float | int | bool:
    """Return a number as an element of `dtype`: integers wrap around, as PyTorch's do."""
    if dtype.is_integer and dtype is not DType.BOOL:
        if isinstance(value, float) and not np.isfinite(value):
            raise ModelError(f"a number must fit {dtype.value}, got {value}")
        whole, bits = int(value), dtype.bits
        low = 0 if dtype.value.startswith("u") else -(1 << (bits - 1))
        return (whole - low) % (1 << bits) + low
    return value


# ---- arguments by name


class ByName:
    """A conversion by a function that takes its arguments from the node's attributes, by their names."""

    def __init__(self, function: Callable[..., Any]) -> None:
        parameters = list(inspect.signature(function).parameters.values())[1:]
        self.function, self.__module__ = function, function.__module__
        self.names = {p.name.removesuffix("_"): p.name for p in parameters}  # a keyword of Python has `_` after it
        self.annotations = {p.name: str(p.annotation) for p in parameters}
        self.allowed = {name: _allowed(annotation) for name, annotation in self.annotations.items()}
        self.first = parameters[0].name if parameters else ""
        self.names |= {f"#{i}": p.name for i, p in enumerate(parameters)}  # of an argument without a name

    def __call__(self, node: AtenNode, *inputs: Value) -> Any:
        arguments = node.arguments
        if _is_complex(arguments, inputs):
            return _of_complex(node)
        given = dict[str, Any]()
        for i, (name, value) in enumerate(arguments.items()):
            name = self.first if not i and self.first else self.names.get(name.lower(), name)
            if name in self.annotations:
                allowed = self.allowed[name]
                given[name] = _checked(node, name, _as_tensor(node, resolved(node, value), allowed), allowed)
            elif name not in HINTS and not _is_default(value):
                raise UnsupportedError(f"{node.kind}: argument {name} is not supported, got {value!r}")
        return typed(node, self.function(node, **given))


def _is_complex(arguments: Mapping[str, Any], inputs: Sequence[Value]) -> bool:
    """True if an input or an argument is a complex number, or the requested type is."""
    is_complex = Complex in map(type, inputs) or complex in map(type, arguments.values())
    return is_complex or arguments.get("dtype") in COMPLEX.values()


def _of_complex(node: AtenNode) -> Any:
    """Return the outputs of a node with complex inputs."""
    function = OF_COMPLEX.get(node.kind)
    if function is None:
        raise UnsupportedError(f"{node.kind}: complex numbers are not supported")
    first, *rest = node.arguments.items()
    named = {name: resolved(node, value) for name, value in rest if name not in HINTS}
    return typed(node, function(node, resolved(node, first[1]), **named))


def of_complex_only(node: AtenNode, *inputs: Value) -> Any:
    """Return the outputs of an operation that real numbers do not have."""
    if not any(isinstance(x, Complex) for x in inputs):
        raise ModelError(f"{node.kind}: the input must be complex, got real numbers")
    return _of_complex(node)


def _is_default(value: Any) -> bool:
    """True for values that ask for nothing: no generator, no output to write into."""
    return value is None or value is False or value in ((), "")


def resolved(node: AtenNode, value: Any) -> Any:
    """Return an argument with values of the graph in it."""
    if isinstance(value, tuple):
        return tuple(resolved(node, v) for v in cast("tuple[Any, ...]", value))
    if not isinstance(value, Argument):
        return value
    result = node.inputs[value.index]
    if value.kind == "tensor":
        return result
    if not isinstance(result, OutPort):
        raise ModelError(f"{node.kind}: numbers must be scalars, got another value")
    known = result.value
    if known is not None and known.size == 1 and not isinstance(known.reshape(-1)[0], Expr):
        return {"int": int, "float": float, "bool": bool}[value.kind](known.reshape(-1)[0])
    return Symbol(result, value.kind)


def _as_tensor(node: AtenNode, value: Any, allowed: Allowed) -> Any:
    """Return a number as a tensor where a conversion takes tensors only, in the type that both are computed in."""
    if not allowed.has_tensors_only or not isinstance(value, int | float | Symbol):
        return value
    kinds = [_kind_of(x) for x in (value, *node.inputs) if isinstance(x, int | float | Symbol | OutPort)]
    return node.port(value, promoted_type(kinds))


PLAIN: dict[str, tuple[type, ...]] = {
    "Any": (object,),
    "OutPort": (OutPort,),
    "CompositeTensor": (CompositeTensor,),
    "int": (int,),
    "float": (float, int),
    "bool": (bool,),
    "str": (str,),
    "DType": (DType,),
    "Symbol": (Symbol,),
    "Size": (int, Symbol),
    "Number": (int, float, Symbol),
}


@dataclass(frozen=True, slots=True)
class Allowed:
    """The values that an annotation `A | B | Sequence[C | D]` allows: of `kinds`, None, and tuples of `elements`."""

    annotation: str
    kinds: tuple[type, ...]
    has_none: bool
    has_booleans: bool
    has_tensors_only: bool
    elements: tuple[Allowed, ...]

    def includes(self, value: Any) -> bool:
        """True if a value is one of these."""
        if isinstance(value, tuple):
            members = cast("tuple[Any, ...]", value)
            return object in self.kinds or any(all(map(one.includes, members)) for one in self.elements)
        if value is None:
            return self.has_none
        return isinstance(value, self.kinds) and (self.has_booleans or not isinstance(value, bool))


@cache
def _allowed(annotation: str) -> Allowed:
    lists: list[str] = re.findall(r"Sequence\[((?:[^\[\]]|\[[^\]]*\])*)\]", annotation)
    names = re.sub(r"Sequence\[(?:[^\[\]]|\[[^\]]*\])*\]", "", annotation).replace(" ", "").split("|")
    kinds = dict.fromkeys(kind for name in names for kind in PLAIN.get(name, ()))
    common = {*names}.intersection
    return Allowed(
        annotation,
        tuple(kinds),
        has_none=bool(common({"None", "Any"})),
        has_booleans=bool(common({"bool", "Number", "Any"})),
        has_tensors_only=not lists and {"OutPort", "None"}.issuperset(names),
        elements=tuple(map(_allowed, lists)),
    )


def _checked(node: AtenNode, name: str, value: Any, allowed: Allowed) -> Any:
    """Return the value of an argument. ModelError if its annotation forbids it; UnsupportedError for run-time numbers.

    A list of one kind may be given as one element.
    """
    if allowed.includes(value):
        return value
    if any(isinstance(v, Symbol) for v in cast("tuple[Any, ...]", value if isinstance(value, tuple) else (value,))):
        raise UnsupportedError(f"{node.kind}: {name} must be known at compile time")
    if value is None:
        raise ModelError(f"{node.kind}: argument {name} must be given, got none")
    text = type(cast(object, value)).__name__
    raise ModelError(f"{node.kind}: argument {name} must be {allowed.annotation}, got {text}")


def typed(node: AtenNode, found: Any) -> Any:
    """Return outputs in the element types of the archive."""
    values = found.values if isinstance(found, Outputs) else found
    parts: list[Any] = list(cast("Sequence[Any]", values)) if isinstance(values, Sequence) else [values]
    types = node.attrs.get("given", ())
    for i, part in enumerate(parts):
        if isinstance(part, OutPort) and i < len(types) and types[i] is not None:
            parts[i] = node.cast(part, types[i])
    return Outputs(parts)
