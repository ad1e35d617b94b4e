"""A graph of operations of the opset to OpenVINO IR, versions 10 and 11: `.xml` and `.bin`."""

from aot.writers.openvino.writer import VERSIONS, write

__all__ = ["VERSIONS", "write"]
