"""Attributes of Squeeze in ONNX files."""

from openvino.tools.mo.front.common.partial_infer.utils import int64_array
from openvino.tools.mo.front.extractor import FrontExtractorOp
from openvino.tools.mo.front.onnx.extractors.utils import onnx_attr
from openvino.tools.mo.graph.graph import Node
from openvino.tools.mo.ops.squeeze import Squeeze


class SqueezeExtractor(FrontExtractorOp):
    """Reads the axes."""

    op = "Squeeze"
    enabled = True

    @classmethod
    def extract(cls, node: Node) -> bool:
        axes = int64_array(onnx_attr(node, "axes", "ints", default=[]))
        Squeeze.update_node_stat(node, {"squeeze_dims": axes if len(axes) else None})
        return cls.enabled
