"""The dialect of Caffe: a layer's conversion, its view of the node, and the layer's name in errors."""

from __future__ import annotations

from typing import Any

from aot.frontends.caffe.registry import CONVERSIONS, Call
from aot.frontends.conversion.dialect import Dialect, Facts, rule_of_inputs
from aot.runtime.errors import UnsupportedError


class _Caffe(Dialect):
    """Inputs of layers are bottoms, then blobs, which stand in another file."""

    def call(self, attrs: Facts, *parts: Any) -> Call:
        call = Call(*parts)
        function = self.conversion(call.kind, attrs)
        alone = len(call.inputs) == attrs.get("bottoms")
        if function is not None and alone and rule_of_inputs(function, call, call.inputs):
            weights = "the .caffemodel beside the network (of its name, or the only one)"
            rule = f"it has the bottoms, and in {weights} the blobs, that it computes with"
            raise UnsupportedError(f"{rule}, got {len(call.inputs)} bottoms and no blobs")
        return call


CAFFE = _Caffe("caffe", "Caffe", CONVERSIONS, Call)
