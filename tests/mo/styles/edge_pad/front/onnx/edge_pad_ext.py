from openvino.tools.mo.front.extractor import FrontExtractorOp
from openvino.tools.mo.front.onnx.extractors.utils import onnx_attr
from openvino.tools.mo.front.common.partial_infer.utils import int64_array
from openvino.tools.mo.ops.op import Op


class EdgePadExtractor(FrontExtractorOp):
    op = 'EdgePad'
    enabled = True

    @classmethod
    def extract(cls, node):
        widths = onnx_attr(node, 'widths', 'ints', default=None, dst_type=lambda x: int64_array(x))
        Op.get_op_class_by_name('EdgePad').update_node_stat(node, {'widths': widths})
        return cls.enabled
