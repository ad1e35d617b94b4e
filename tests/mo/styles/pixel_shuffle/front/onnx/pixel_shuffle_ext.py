from openvino.tools.mo.front.extractor import FrontExtractorOp
from openvino.tools.mo.front.onnx.extractors.utils import onnx_attr, get_onnx_autopad
from openvino.tools.mo.ops.op import Op


class PixelShuffleExtractor(FrontExtractorOp):
    op = 'PixelShuffle'
    enabled = True

    @classmethod
    def extract(cls, node):
        attrs = {'upscale_factor': onnx_attr(node, 'upscale_factor', 'i')}
        Op.get_op_class_by_name(cls.op).update_node_stat(node, attrs)
        return cls.enabled
