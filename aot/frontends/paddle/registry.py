"""The table of conversions of PaddlePaddle's operations.

    @paddle("softmax")
    def softmax(node: PaddleNode, x: OutPort, *, axis: int = -1) -> OutPort:
        return node.build.Softmax(x, axis=node.axis(axis, x.type.rank))

`aot/frontends/conversion/node_context.py` says what a conversion gets and returns. Names, inputs and attributes are
those of version 3; `older.py` brings operations of version 2 to them. An operation in place, `relu_`, is the one
without `_`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar, cast

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.frontends.conversion.node_context import NodeContext, StaticSequence, Value
from aot.frontends.conversion.table import Table
from aot.frontends.onnx.registry import CONVERSIONS as ONNX_CONVERSIONS
from aot.frontends.onnx.registry import OnnxNode
from aot.frontends.paddle.program import element_type
from aot.ir.graph import OutPort
from aot.runtime.abi import DType
from aot.runtime.errors import ModelError

F = TypeVar("F", bound=Callable[..., Any])
Integers = OutPort | StaticSequence  # a vector, or tensors of one element each

FAMILIES = ("arrays", "control", "detection", "math", "neural")  # folders of conversions
ONNX_OPSET = 22  # whose meaning conversions by ONNX's operations have
CONVERSIONS = Table("paddle", __name__, FAMILIES)

paddle = CONVERSIONS.register
extension = CONVERSIONS.register  # of extensions' conversions


@dataclass(frozen=True, slots=True)
class PaddleNode(NodeContext):
    """An operation of PaddlePaddle being converted."""

    def onnx(self, kind: str, *inputs: Value, **attrs: Any) -> Any:
        """Convert as an operation of ONNX, with attributes by ONNX's names."""
        view = partial(OnnxNode, opset=ONNX_OPSET)
        return self.converted_as(view, ONNX_CONVERSIONS.of(kind), kind, inputs, attrs)

    def dtype(self, name: str = "dtype", default: DType = DType.F32) -> DType:
        """Return the element type that an attribute names; the default for one that names none."""
        text = self.text(name, "undefined").lower()
        return default if not text or text.startswith("undefined") else element_type(text)

    def vector(self, value: Value) -> OutPort:
        """Return integers as an i64 vector."""
        if isinstance(value, tuple):
            parts = [self.build.Reshape(self.cast(p, DType.I64), self.list([1])) for p in value]
            return parts[0] if len(parts) == 1 else self.build.Concat(*parts, axis=0)
        port = self.cast(cast(OutPort, value), DType.I64)
        return port if port.type.rank == 1 else self.build.Reshape(port, self.list([-1]))

    def axes(self, value: Value, rank: int, what: str = "axes") -> tuple[int, ...]:
        """Return axes counted from the front, which must be known."""
        return tuple(self.axis(a, rank) for a in self.ints(self.vector(value), what))

    def one(self, value: OutPort, what: str) -> float:
        """Return the one number of an input, which must be known."""
        reshape = np.asarray(self.known(value, what)).reshape(-1)
        if len(reshape) != 1:
            raise ModelError(f"{self.kind}: {what} must be one number, got {len(reshape)}")
        return reshape[0].item()

    def first(self, x: OutPort, rank: int = 4) -> tuple[OutPort, bool]:
        """Return an image with channels as axis 1, and True if they were the last axis."""
        last = self.text("data_format", "NCHW") in ("NHWC", "NDHWC", "NLC")
        self.image(x, rank)
        return (self.to_channels_first(x) if last else x), last

    def back(self, y: OutPort, last: bool) -> OutPort:
        return self.to_channels_last(y) if last else y

    def paired(self, name: str, rank: int, default: Sequence[int] | None = None) -> tuple[int, ...]:
        """Return a number for each spatial axis."""
        integers = self.integers(name, default)
        if len(integers) not in (1, rank):
            raise ModelError(f"{self.kind}: {name} must have {rank} numbers, got {list(integers)}")
        return integers if len(integers) == rank else integers * rank

    def pads(self, rank: int) -> dict[str, Any]:
        """Return padding as attributes of ONNX."""
        algorithm = self.text("padding_algorithm", "EXPLICIT")
        if algorithm != "EXPLICIT":
            return {"auto_pad": {"SAME": "SAME_UPPER"}.get(algorithm, algorithm)}
        integers = self.integers("paddings", (0,) * rank)
        if len(integers) == 2 * rank:
            return {"pads": (*integers[::2], *integers[1::2])}
        return {"pads": self.paired("paddings", rank, (0,) * rank) * 2}
