"""The dialect of TensorFlow Lite: a node's conversion, its view of the node, and the node's name in errors."""

from __future__ import annotations

from typing import Any

from aot.frontends.conversion.dialect import Dialect, Facts
from aot.frontends.conversion.node_context import Conversion
from aot.frontends.tf.math.complex_numbers import refuse_complex
from aot.frontends.tflite.registry import CONVERSIONS, TfliteNode, conversion_of
from aot.frontends.unsupported import Problem

PROCESSORS = {
    "CUSTOM.DISPATCH_OP": "code that LiteRT's compiler made for an NPU",
    "CUSTOM.edgetpu-custom-op": "code for an Edge TPU",
    "CUSTOM.ethos-u": "code for an Ethos-U",
}  # custom operations whose contents are code of another processor


class _TensorFlowLite(Dialect):
    """Tensors may be quantised, and some operations have conversions of their own for those."""

    def conversion(self, kind: str, attrs: Facts) -> Conversion | None:
        sides = [
            [t.quantization for t in side if t is not None]
            for side in (attrs.get("taken", ()), attrs.get("given", ())[:1])
        ]
        in_blocks = any(q is not None and q.blocks is not None for side in sides for q in side)
        return conversion_of(kind, not in_blocks and all(any(q is not None for q in side) for side in sides))

    def context(self, attrs: Facts, *parts: Any) -> TfliteNode:
        context = TfliteNode(*parts)
        refuse_complex(context, self.conversion(context.kind, attrs))
        return context

    def problem(self, node: str, kind: str, attrs: Facts, reason: str) -> Problem:
        del attrs
        processor = PROCESSORS.get(kind)
        return Problem(
            node, kind, "", 0, reason if processor is None else f"{processor}: compile the file that it was made of"
        )


TFLITE = _TensorFlowLite("tflite", "TensorFlow Lite", CONVERSIONS, TfliteNode)
