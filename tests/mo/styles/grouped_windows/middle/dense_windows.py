import numpy as np

from mo.front.tf.graph_utils import create_op_with_const_inputs
from mo.graph.graph import Graph
from mo.middle.replacement import MiddleReplacementPattern
from extensions.middle.pass_separator import MiddleStart, MiddleFinish
from extensions.ops.elementwise import Mul


class DenseConvolutions(MiddleReplacementPattern):
    """Convolutions in groups go to every place, with data around of half a kernel."""
    enabled = True
    force_shape_inference = True

    def run_after(self):
        return [MiddleStart]

    def run_before(self):
        return [MiddleFinish]

    @staticmethod
    def pattern():
        return dict(nodes=[('conv', dict(kind='op', type='Convolution', group=lambda g: g is not None and g > 1)),
                           ('conv_d', dict(kind='data')),
                           ('relu', dict(kind='op', type='ReLU'))],
                    edges=[('conv', 'conv_d'), ('conv_d', 'relu')])

    @staticmethod
    def replace_pattern(graph: Graph, match: dict):
        conv = match['conv']
        dims = conv.spatial_dims
        if np.all(conv.stride[dims] == 1):
            return
        assert conv.auto_pad is None and conv.layout == 'NCHW'
        weights = conv.in_port(1).data.get_value()
        assert weights.shape[0] == conv.output and list(weights.shape[2:]) == list(conv.kernel_spatial)
        assert list(conv.kernel_shape) == list(weights.shape)
        stride, pad = conv.stride.copy(), conv.pad.copy()
        stride[dims] = 1
        pad[dims] = conv.kernel_spatial.reshape(-1, 1) // 2 + conv.pad_spatial_shape
        conv['stride'], conv['pad'], conv['pad_spatial_shape'] = stride, pad, pad[dims]
        conv.in_port(1).data.set_value((weights / (weights.shape[1] * int(conv.group))).astype(np.float32))
        conv.in_port(1).get_source().node['value'] = conv.in_port(1).data.get_value()
        conv['need_shape_inference'] = True
        for node in graph.get_op_nodes():
            node['override_output_shape'] = True


class SumsOfPools(MiddleReplacementPattern):
    """Means become sums."""
    enabled = True

    def run_after(self):
        return [DenseConvolutions]

    def run_before(self):
        return [MiddleFinish]

    def find_and_replace_pattern(self, graph: Graph):
        for pool in graph.get_op_nodes(type='Pooling'):
            if pool.pool_method != 'avg':
                assert pool.rounding_type == 'ceil'
                continue
            assert pool.rounding_type == 'floor'
            size = np.prod(pool.window[pool.spatial_dims]) + int(pool.exclude_pad)
            mul = create_op_with_const_inputs(graph, Mul, {1: np.array(size, np.float32)}, dict(name=pool.name + '/sum'))
            pool.out_port(0).get_connection().insert_node(mul)
