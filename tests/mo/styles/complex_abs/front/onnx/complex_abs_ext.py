from mo.front.extractor import FrontExtractorOp
from mo.front.onnx.extractors.utils import onnx_attr
from mo.ops.op import Op


class ComplexAbsFrontExtractor(FrontExtractorOp):
    op = 'ComplexAbs'
    enabled = True

    @classmethod
    def extract(cls, node):
        eps = onnx_attr(node, 'eps', 'f', default=0.0)
        mode = onnx_attr(node, 'mode', 's', default=b'abs', dst_type=lambda x: x.decode())
        Op.get_op_class_by_name('ComplexAbs').update_node_stat(node, {'eps': eps, 'mode': mode})
        return cls.enabled
