"""Attributes of Pack in ONNX files."""

from openvino.tools.mo.front.extractor import FrontExtractorOp
from openvino.tools.mo.front.onnx.extractors.utils import onnx_attr
from openvino.tools.mo.graph.graph import Node
from openvino.tools.mo.ops.concat import Concat


class PackExtractor(FrontExtractorOp):
    """Reads the axis; the operation stays Pack until it is replaced."""

    op = "Pack"
    enabled = True

    @classmethod
    def extract(cls, node: Node) -> bool:
        Concat.update_node_stat(node, {"op": "Pack", "axis": onnx_attr(node, "axis", "i", default=0)})
        return cls.enabled
