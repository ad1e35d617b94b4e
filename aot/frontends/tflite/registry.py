"""The table of conversions of TensorFlow Lite's operations.

    @tflite("RELU6")
    def relu6(node: TfliteNode, x: OutPort) -> OutPort:
        return node.build.Clamp(x, min=0.0, max=6.0)

`aot/frontends/conversion/node_context.py` says what a conversion gets and returns. Kinds are the names of the schema's
BuiltinOperator, `CUSTOM.name` for custom operations; attributes are the fields of the options in small letters.

Tensors may be quantised. A conversion says how it treats them:

    numbers (default)    it gets and gives real numbers: inputs are dequantised, outputs quantised around it
    stored               it moves elements: it gets and gives them as they are stored
    exact                it gets elements as they are stored, and computes as LiteRT's integer kernels;
                         it is tried first where an input and output 0 are quantised

Fused activations are applied to the result of a conversion of numbers. Complex tensors are pairs of real ones, as in
TensorFlow's conversions: `by_parts`, or `takes_complex`; other conversions refuse them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from math import prod
from typing import Any, TypeVar, cast

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.frontends.conversion.node_context import Conversion, NodeContext, Outputs, Value
from aot.frontends.conversion.table import Table, decorator
from aot.frontends.tf.registry import CONVERSIONS as TF_CONVERSIONS
from aot.frontends.tf.registry import TfNode, mark_complex
from aot.frontends.tflite.tensors import COMPUTED, Blocks, Quantization, Tensor
from aot.ir.graph import OutPort
from aot.ir.types import Array, dtype_of
from aot.opset.elementwise.unary import Rounding
from aot.runtime.abi import DType
from aot.runtime.errors import ModelError, UnsupportedError

__all__ = [
    "CONVERSIONS",
    "EXACT",
    "Conversion",
    "Outputs",
    "TfliteNode",
    "Value",
    "conversion_of",
    "exact",
    "extension",
    "tflite",
]

C = TypeVar("C", bound=Callable[..., Any])

FAMILIES = ("arrays", "control", "image", "integers", "math", "neural")  # folders of conversions
CONVERSIONS = Table("tflite", __name__, FAMILIES)
EXACT: dict[str, Conversion] = {}
NONE, RELU, RELU_N1_TO_1, RELU6, TANH, SIGN_BIT = range(6)
RANGES = {RELU: (0.0, None), RELU_N1_TO_1: (-1.0, 1.0), RELU6: (0.0, 6.0)}
WIDE_TYPES = (DType.I32, DType.I64)  # whose numbers f32 does not hold
STORABLE = (*COMPUTED, DType.I8, DType.U8, DType.I16, *WIDE_TYPES)


def tflite(*kinds: str, stored: bool = False, activates: bool = True, takes_complex: bool = False) -> Callable[[C], C]:
    """Register the conversion of operations.

    `activates`: the fused activation is applied to the result. `takes_complex`: inputs may be complex numbers.
    """

    def register(function: C) -> C:
        if takes_complex:
            mark_complex(function)
        found = function if stored else _numbers(function, activates)
        CONVERSIONS.enter(kinds, found)
        return function

    return register


exact = decorator(EXACT)  # registers the conversion of operations on quantised tensors


def extension(kind: str) -> Callable[[C], C]:
    """Register an extension's conversion of an operation."""
    return tflite(kind)


def conversion_of(kind: str, is_quantized: bool) -> Conversion | None:
    """Return the conversion of an operation, of the extensions that take part or built in; None if there is none."""
    CONVERSIONS.load()
    return CONVERSIONS.of_extension(kind) or (EXACT.get(kind) if is_quantized else None) or CONVERSIONS.of(kind)


@dataclass(frozen=True, slots=True)
class TfliteNode(NodeContext):
    """A node of TensorFlow Lite being converted."""

    @property
    def taken(self) -> Sequence[Tensor | None]:
        """Facts of the file about the inputs."""
        return self.attrs.get("taken", ())

    @property
    def output_tensors(self) -> Sequence[Tensor]:
        """Facts of the file about the outputs."""
        return self.attrs.get("given", ())

    def quantization(self, i: int) -> Quantization | None:
        """Scale and zero point of input i; None if it has none."""
        tensor = self.taken[i] if i < len(self.taken) else None
        return None if tensor is None else tensor.quantization

    def output_quantization(self, i: int = 0) -> Quantization | None:
        return self.output_tensors[i].quantization if i < len(self.output_tensors) else None

    def output_type(self, i: int = 0) -> DType:
        """Return the element type that the file gives an output."""
        if i >= len(self.output_tensors):
            raise ModelError(f"{self.kind}: output {i} is read, got {len(self.output_tensors)} outputs")
        try:
            return DType(self.output_tensors[i].type)
        except ValueError:
            raise UnsupportedError(
                f"{self.kind}: element type {self.output_tensors[i].type} is not supported"
            ) from None

    def real(self, x: OutPort, q: Quantization | None) -> OutPort:
        """(x - zero) scale in f32, for a tensor that is stored with scales; others as they are."""
        if q is None or x.type.dtype not in STORABLE:
            return x
        if q.blocks is not None:
            return self._real_blocks(x, q.axis, q.blocks)
        build, rank = self.build, x.type.rank
        exact = DType.F64 if x.type.dtype in WIDE_TYPES else DType.F32  # rounded once
        integers = self.cast(x, exact)
        if any(q.zeros):
            integers = build.Subtract(integers, self.along(q.zeros, q, rank, exact))
        return self.cast(build.Multiply(integers, self.along(q.scales, q, rank, exact)), DType.F32)

    def _real_blocks(self, x: OutPort, axis: int, blocks: Blocks) -> OutPort:
        """(x - zeros) scales in f32, for a tensor of known sizes."""
        build, sizes = self.build, [self.extent(x, a, "the size of a tensor in blocks") for a in range(x.type.rank)]
        apart = [*sizes[:axis], sizes[axis] // blocks.size, blocks.size, *sizes[axis + 1 :]]
        self.refuse(blocks.scales.size * blocks.size != prod(sizes), "a tensor in blocks has the shape of the file")

        def spread(values: Array) -> OutPort:
            return self.cast(build.const(np.expand_dims(values, axis + 1), dtype_of(values)), DType.F32)

        integers = self.cast(build.Reshape(x, self.list(apart)), DType.F32)
        if blocks.zeros is not None:
            integers = build.Subtract(integers, spread(blocks.zeros))
        return build.Reshape(build.Multiply(integers, spread(blocks.scales)), self.list(sizes))

    def along(self, values: Sequence[float], q: Quantization, rank: int, dtype: DType) -> OutPort:
        """Numbers of a tensor's slices in a shape that broadcasts to it."""
        if len(values) == 1 or not q.is_by_axis:
            return self.build.const(values[0], dtype)
        if q.axis >= rank:
            raise ModelError(f"{self.kind}: scales must go along axis {q.axis}, got rank {rank}")
        return self.build.Reshape(self.build.const(values, dtype), self.list([-1, *[1] * (rank - 1 - q.axis)]))

    def stored(self, x: OutPort, q: Quantization | None, dtype: DType) -> OutPort:
        """saturate(round(x / scale) + zero), halves away from zero; `x` itself if there are no scales."""
        if q is None or dtype not in STORABLE or not x.type.dtype.is_float:
            return x
        self.refuse(q.blocks is not None, "outputs in blocks are not supported")
        build, rank = self.build, x.type.rank
        low = -(2.0 ** (dtype.bits - 1)) if dtype.is_signed else 0.0
        high = low + 2.0**dtype.bits - 1
        port = build.Divide(x, self.along(q.scales, q, rank, DType.F32))
        port = build.Round(port, mode=Rounding.HALF_AWAY_FROM_ZERO)
        if dtype in WIDE_TYPES:
            port = self.cast(port, DType.F64)
        if any(q.zeros):
            port = build.Add(port, self.along(q.zeros, q, rank, port.type.dtype))
        return self.cast(build.Clamp(port, min=low, max=high), COMPUTED.get(dtype, dtype))

    def activated(self, x: OutPort) -> OutPort:
        """`x` after the activation that is fused into the operation."""
        kind = self.integer("fused_activation_function", NONE)
        if kind == NONE:
            return x
        if kind == TANH:
            return self.build.Tanh(x)
        self.refuse(kind not in RANGES, f"fused activation {kind} is not supported")
        if kind == RELU and x.type.dtype.is_float:
            return self.build.Relu(x)
        low, high = RANGES[kind]
        if x.type.dtype.is_float and high is not None:
            return self.build.Clamp(x, min=low, max=high)
        port = self.build.Maximum(x, self.like(low, x))
        return port if high is None else self.build.Minimum(port, self.like(high, x))

    def as_numbers(self, *inputs: OutPort | None) -> OutPort:
        """Convert by real numbers, where LiteRT has no integer kernel."""
        function = conversion_of(self.kind, False)
        assert function is not None
        found: Any = function(self, *inputs)
        return found if isinstance(found, OutPort) else found[0]

    def tf(self, kind: str, *inputs: Value, **attrs: Any) -> Any:
        """Convert as an operation of TensorFlow, with attributes by TensorFlow's names."""
        return self.converted_as(TfNode, TF_CONVERSIONS.of(kind), kind, inputs, attrs)


def _numbers(function: C, activates: bool) -> C:
    """Return a conversion of real numbers for tensors that may be quantised."""

    @wraps(function)
    def converted(node: TfliteNode, *inputs: Any) -> Any:
        values = [node.real(x, node.quantization(i)) if isinstance(x, OutPort) else x for i, x in enumerate(inputs)]
        numbers = function(node, *values)
        if isinstance(numbers, Outputs):
            return numbers
        parts = list(cast("tuple[Any, ...]", numbers)) if isinstance(numbers, tuple) else [numbers]
        for i, part in enumerate(parts):
            if isinstance(part, OutPort) and i < len(node.output_tensors):
                part = node.activated(part) if not i and activates else part
                parts[i] = node.stored(part, node.output_quantization(i), node.output_type(i))
        return tuple(parts)

    return cast(C, converted)
