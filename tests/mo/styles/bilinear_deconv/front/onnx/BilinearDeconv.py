import numpy as np

from openvino.tools.mo.front.common.partial_infer.utils import int64_array, float32_array
from openvino.tools.mo.front.common.replacement import FrontReplacementOp
from openvino.tools.mo.graph.graph import Graph, Node
from openvino.tools.mo.ops.const import Const
from openvino.tools.mo.ops.convolution import Convolution


class UpBilinear(FrontReplacementOp):
    op = 'UpBilinear'
    enabled = True

    def replace_op(self, graph: Graph, node: Node):
        from openvino.tools.mo.front.onnx.extractors.utils import onnx_attr
        channels = onnx_attr(node, 'channels', 'i')
        line = np.array([0.25, 0.75, 0.75, 0.25])
        kernel = np.zeros([channels, channels, 4, 4], dtype=np.float32)
        for i in range(channels):
            kernel[i, i] = np.outer(line, line)
        weights = Const(graph, {'value': kernel, 'name': node.id + '/weights'}).create_node()
        deconv = Convolution(graph, {
            'name': node.id + '/deconv', 'type': 'Deconvolution', 'op': 'Deconv2D', 'auto_pad': None, 'bias_addable': True,
            'bias_term': None, 'pad': int64_array([[0, 0], [0, 0], [1, 1], [1, 1]]), 'dilation': int64_array([1, 1, 1, 1]),
            'output_spatial_shape': None, 'original_output_spatial_shape': None, 'output_shape': None,
            'output_padding': None, 'stride': int64_array([1, 1, 2, 2]), 'group': 1, 'output': None,
            'spatial_dims': None, 'channel_dims': int64_array([1]), 'batch_dims': int64_array([0]), 'layout': 'NCHW',
            'input_feature_channel': 0, 'output_feature_channel': 1, 'kernel_spatial': int64_array([4, 4]),
            'kernel_spatial_idx': None, 'get_pad': lambda node, *args: int64_array([[0, 0], [0, 0], [1, 1], [1, 1]]),
            'get_output_feature_dim': lambda node: node.kernel_shape[node.output_feature_channel] * node.group,
        }).create_node([node.in_node(0), weights])
        return [deconv.id]
