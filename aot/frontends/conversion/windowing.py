"""Windows of convolutions and poolings of ONNX and TensorFlow, in the attributes of the opset."""

from __future__ import annotations

from typing import Any

from aot.codegen.dataclass import dataclass
from aot.opset.products.pool_windows import AutoPad


@dataclass(frozen=True, slots=True)
class Windowing:
    """Attributes of a window, one entry for each spatial axis."""

    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    begins: tuple[int, ...]
    ends: tuple[int, ...]
    auto_pad: AutoPad

    def fields(self, *without: str) -> dict[str, Any]:
        """Return them by the opset's names."""
        attributes = {
            "strides": self.strides,
            "dilations": self.dilations,
            "pads_begin": self.begins,
            "pads_end": self.ends,
            "auto_pad": self.auto_pad,
        }
        return {k: v for k, v in attributes.items() if k not in without}
