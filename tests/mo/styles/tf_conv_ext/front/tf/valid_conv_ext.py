import numpy as np

from openvino.tools.mo.front.extractor import FrontExtractorOp
from openvino.tools.mo.front.tf.conv_ext import Conv2DFrontExtractor, DepthwiseConv2dNativeFrontExtractor


class ValidConv(FrontExtractorOp):
    """Convolutions without padding."""
    op = 'Conv2D'
    enabled = True

    @classmethod
    def extract(cls, node):
        Conv2DFrontExtractor.extract(node)
        node['auto_pad'] = 'valid'
        node['stride'] = np.array([1, 2, 2, 1])
        return cls.enabled


class AsItIs(FrontExtractorOp):
    op = 'DepthwiseConv2dNative'
    enabled = True

    @classmethod
    def extract(cls, node):
        return DepthwiseConv2dNativeFrontExtractor.extract(node)
