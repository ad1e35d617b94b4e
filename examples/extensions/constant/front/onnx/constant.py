"""Constants of ONNX files, from the message in `node.pb`."""

from onnx import numpy_helper
from openvino.tools.mo.front.extractor import FrontExtractorOp
from openvino.tools.mo.front.onnx.extractors.utils import onnx_attr
from openvino.tools.mo.graph.graph import Node
from openvino.tools.mo.ops.const import Const


class ConstantExtractor(FrontExtractorOp):
    """Reads the tensor."""

    op = "Constant"
    enabled = True

    @classmethod
    def extract(cls, node: Node) -> bool:
        value = numpy_helper.to_array(onnx_attr(node, "value", "t"))
        Const.update_node_stat(node, {"data_type": value.dtype, "value": value})
        return cls.enabled
