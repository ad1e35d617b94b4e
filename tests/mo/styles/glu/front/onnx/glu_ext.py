from mo.front.extractor import FrontExtractorOp
from mo.front.onnx.extractors.utils import onnx_attr


class GluExtractor(FrontExtractorOp):
    op = 'GLU'
    enabled = True

    @classmethod
    def extract(cls, node):
        node['axis'] = onnx_attr(node, 'axis', 'i', -1)
        return cls.enabled
