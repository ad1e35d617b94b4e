import numpy as np

from openvino.tools.mo.front.common.partial_infer.utils import int64_array
from openvino.tools.mo.graph.graph import Graph
from openvino.tools.mo.middle.replacement import MiddleReplacementPattern
from openvino.tools.mo.middle.pass_separator import MiddleFinish, MiddleStart
from openvino.tools.mo.ops.pooling import Pooling


class MeanToPool(MiddleReplacementPattern):
    """A mean of all pixels of an NHWC tensor becomes a pool."""
    enabled = True
    graph_condition = [lambda graph: graph.graph['layout'] == 'NHWC']
    force_clean_up = True

    def run_after(self):
        return [MiddleStart]

    def run_before(self):
        return [MiddleFinish]

    @staticmethod
    def pattern():
        return dict(
            nodes=[('data', dict(kind='data', shape=lambda shape: shape is not None and len(shape) == 4)),
                   ('axes', dict(kind='data', value=lambda v: v is not None and sorted(np.array(v).ravel()) == [1, 2])),
                   ('mean', dict(kind='op', op='ReduceMean', keep_dims=lambda k: bool(k))),
                   ('mean_d', dict(kind='data'))],
            edges=[('data', 'mean', {'in': 0}), ('axes', 'mean', {'in': 1}), ('mean', 'mean_d')])

    def replace_pattern(self, graph: Graph, match: dict):
        mean = match['mean']
        n, h, w, c = match['data'].shape
        assert list(match['mean_d'].shape) == [n, 1, 1, c], match['mean_d'].shape
        pool = Pooling(graph, {
            'name': mean.soft_get('name', mean.id) + '/pool', 'pool_method': 'avg', 'layout': 'NHWC',
            'window': int64_array([1, h, w, 1]), 'stride': int64_array([1, 1, 1, 1]),
            'pad': int64_array([[0, 0]] * 4), 'pad_spatial_shape': int64_array([[0, 0], [0, 0]]),
            'spatial_dims': int64_array([1, 2]), 'channel_dims': int64_array([3]), 'batch_dims': int64_array([0]),
            'exclude_pad': True, 'rounding_type': 'floor', 'output_spatial_shape': None}).create_node()
        mean.in_port(0).get_connection().set_destination(pool.in_port(0))
        mean.out_port(0).get_connection().set_source(pool.out_port(0))
        mean.in_port(1).disconnect()
