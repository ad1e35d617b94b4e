"""The table of conversions of Caffe's layers.

    @caffe("Softmax", param="softmax_param")
    def softmax(node: CaffeNode, x: OutPort, *, axis: int) -> OutPort:
        return node.build.Softmax(x, axis=axis)

`aot/frontends/conversion/node_context.py` says what a conversion gets and returns. Inputs are the bottoms of the
layer, then its blobs. Attributes are the fields of `param`, the layer's message of parameters, with the defaults of
Caffe, and those of other messages that the layer has; fields of a message in it have its name in front: `shape.dim`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from aot.codegen.dataclass import dataclass
from aot.frontends.conversion.node_context import NodeContext, Value
from aot.frontends.conversion.table import Table
from aot.frontends.onnx.registry import CONVERSIONS as ONNX_CONVERSIONS
from aot.frontends.onnx.registry import OnnxNode
from aot.ir.graph import OutPort

C = TypeVar("C", bound=Callable[..., Any])

FAMILIES = ("arrays", "detection", "math", "neural")  # folders of conversions
ONNX_OPSET = 22  # whose meaning conversions by ONNX's operations have
CONVERSIONS = Table("caffe", __name__, FAMILIES)
PARAMETERS: dict[str, str] = {}  # the field of a layer that has the parameters of a type

extension = CONVERSIONS.register  # of extensions' conversions


def caffe(*kinds: str, param: str = "") -> Callable[[C], C]:
    """Register the conversion of types of layers; `param`: the field with their parameters."""
    if param:
        PARAMETERS.update(dict.fromkeys(kinds, param))
    return CONVERSIONS.register(*kinds)


@dataclass(frozen=True, slots=True)
class CaffeNode(NodeContext):
    """A layer of Caffe being converted."""

    def onnx(self, kind: str, *inputs: Value, **attrs: Any) -> Any:
        """Convert as an operation of ONNX, with attributes by ONNX's names."""
        view = partial(OnnxNode, opset=ONNX_OPSET)
        return self.converted_as(view, ONNX_CONVERSIONS.of(kind), kind, inputs, attrs)

    def along(self, value: OutPort, axis: int, rank: int) -> OutPort:
        """Return `value` with axes appended, so that its first axis aligns with `axis` of tensors of `rank`."""
        first, own = self.axis(axis, rank), value.type.rank
        missing = range(own, rank - first)
        return self.build.Unsqueeze(value, self.list(missing)) if missing else value

    def flat(self, value: OutPort) -> OutPort:
        """Return a blob as a vector: older files store vectors with four axes."""
        return value if value.type.rank == 1 else self.reshape(value, (-1,))
