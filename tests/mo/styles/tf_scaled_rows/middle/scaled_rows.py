import numpy as np

from openvino.tools.mo.front.common.partial_infer.utils import int64_array
from openvino.tools.mo.graph.graph import Graph, Node
from openvino.tools.mo.middle.pass_separator import MiddleFinish, MiddleStart
from openvino.tools.mo.middle.replacement import MiddleReplacementPattern
from openvino.tools.mo.ops.pooling import Pooling


class ScaledRows(MiddleReplacementPattern):
    """
    depthwise conv -> Mul -> ReLU -> MaxPool(1x1, stride 2): the scale goes into the weights [H, W, C, M],
    the strided pool becomes one with a window of 2x2, and a mean along the rows follows it
    """
    enabled = True
    force_shape_inference = True
    graph_condition = [lambda graph: graph.graph['layout'] == 'NHWC']

    def run_after(self):
        return [MiddleStart]

    def run_before(self):
        return [MiddleFinish]

    @staticmethod
    def pattern():
        return dict(
            nodes=[('conv', dict(type='Convolution', layout='NHWC', group=lambda g: g is not None and g > 1)),
                   ('conv_data', dict(kind='data')),
                   ('scale', dict(kind='data', value=lambda v: v is not None and v.ndim == 1)),
                   ('mul', dict(op='Mul')),
                   ('mul_data', dict(kind='data')),
                   ('relu', dict(op='ReLU')),
                   ('relu_data', dict(kind='data')),
                   ('pool', dict(type='Pooling', op='MaxPool', pool_method='max'))],
            edges=[('conv', 'conv_data'), ('conv_data', 'mul'), ('scale', 'mul'), ('mul', 'mul_data'),
                   ('mul_data', 'relu'), ('relu', 'relu_data'), ('relu_data', 'pool')])

    @staticmethod
    def replace_pattern(graph: Graph, match: dict):
        conv, mul, pool = match['conv'], match['mul'], match['pool']
        weights = conv.in_port(1).data.get_value()
        channels = conv.in_port(0).data.get_shape()[conv.channel_dims[0]]
        assert list(weights.shape) == [*conv.kernel_spatial, channels, conv.output // conv.group]
        scale = match['scale'].value
        conv.in_port(1).data.set_value(weights * scale.reshape(channels, -1))
        mul.out_port(0).get_connection().set_source(conv.out_port(0))

        assert np.array_equal(pool.window, [1, 1, 1, 1]) and np.array_equal(pool.spatial_dims, [1, 2])
        pool.window = int64_array([1, 2, 2, 1])
        name = pool.soft_get('name', pool.id)
        average = Pooling(graph, dict(name=name + '/average', window=int64_array([1, 1, 3, 1]),
                                      stride=int64_array([1, 1, 1, 1]), pad=int64_array([[0, 0]] * 4),
                                      pad_spatial_shape=None, output_spatial_shape=None, pool_method='avg',
                                      exclude_pad=True, auto_pad='same_upper', rounding_type='floor',
                                      batch_dims=[0], channel_dims=[3], spatial_dims=int64_array([1, 2]))).create_node()
        pool.out_port(0).get_connection().set_source(average.out_port(0))
        pool.out_port(0).connect(average.in_port(0))
