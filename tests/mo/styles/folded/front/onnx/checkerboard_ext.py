from mo.front.extractor import FrontExtractorOp
from mo.front.onnx.extractors.utils import onnx_attr, onnx_node_has_attr
from mo.ops.op import Op


class CheckerboardExtractor(FrontExtractorOp):
    op = 'Checkerboard'
    enabled = True

    @staticmethod
    def extract(node):
        low = onnx_attr(node, 'low', 'f', 0.) if onnx_node_has_attr(node, 'low') else 0.
        Op.get_op_class_by_name('Checkerboard').update_node_stat(node, {'low': low, 'high': onnx_attr(node, 'high', 'f', 1.)})
        return __class__.enabled
