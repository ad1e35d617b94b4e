"""Attributes of Softmax in ONNX files."""

from openvino.tools.mo.front.extractor import FrontExtractorOp
from openvino.tools.mo.front.onnx.extractors.utils import onnx_attr
from openvino.tools.mo.graph.graph import Node

from ...ops.softmax import OwnSoftmax


class SoftmaxExtractor(FrontExtractorOp):
    """Reads the axis."""

    op = "Softmax"
    enabled = True

    @classmethod
    def extract(cls, node: Node) -> bool:
        OwnSoftmax.update_node_stat(node, {"axis": onnx_attr(node, "axis", "i", default=-1)})
        return cls.enabled
