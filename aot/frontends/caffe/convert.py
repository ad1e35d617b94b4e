"""The dialect of Caffe: a layer's conversion, its view of the node, and the layer's name in errors."""

from __future__ import annotations

from typing import Any

from aot.frontends.caffe.registry import CONVERSIONS, CaffeNode
from aot.frontends.conversion.dialect import Dialect, Facts, rule_of_inputs
from aot.runtime.errors import UnsupportedError


class _Caffe(Dialect):
    """Inputs of layers are bottoms, then blobs, which stand in another file."""

    def context(self, attrs: Facts, *parts: Any) -> CaffeNode:
        context = CaffeNode(*parts)
        function = self.conversion(context.kind, attrs)
        alone = len(context.inputs) == attrs.get("bottoms")
        if function is not None and alone and rule_of_inputs(function, context, context.inputs):
            weights = "the .caffemodel beside the network (of its name, or the only one)"
            rule = f"it has the bottoms, and in {weights} the blobs, that it computes with"
            raise UnsupportedError(f"{rule}, got {len(context.inputs)} bottoms and no blobs")
        return context


CAFFE = _Caffe("caffe", "Caffe", CONVERSIONS, CaffeNode)
