import numpy as np

from mo.front.extractor import FrontExtractorOp
from mo.front.onnx.extractors.utils import onnx_attr
from mo.front.common.partial_infer.utils import int64_array
from mo.graph.graph import Node
from mo.ops.op import Op


class OwnUpsample(Op):
    op = 'OwnUpsample'

    def __init__(self, graph, attrs):
        super().__init__(graph, dict(op=self.op, type=None, in_ports_count=4, out_ports_count=1), attrs)


class ResizeFrontExtractor(FrontExtractorOp):
    op = 'Resize'
    enabled = True

    @classmethod
    def extract(cls, node: Node):
        mode = onnx_attr(node, 'mode', 's', default=b'nearest').decode()
        OwnUpsample.update_node_stat(node, {'mode': mode})
        return cls.enabled
