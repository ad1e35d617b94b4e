"""OpenVINO IR, versions 10 and 11: `.xml` and `.bin` to a graph."""

from aot.frontends.openvino.reader import read

__all__ = ["read"]
