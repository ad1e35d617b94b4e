from openvino.tools.mo.front.extractor import FrontExtractorOp
from openvino.tools.mo.front.onnx.extractors.utils import onnx_attr
from openvino.tools.mo.graph.graph import Node


class SkipLayerNormExtractor(FrontExtractorOp):
    op = 'SkipLayerNormalization'
    enabled = True

    @classmethod
    def extract(cls, node: Node):
        node['epsilon'] = onnx_attr(node, 'epsilon', 'f', default=1e-12)
        node['op'] = 'SkipLayerNorm'
        node['type'] = None
        return cls.enabled
