import numpy as np

from mo.back.replacement import BackReplacementPattern
from mo.front.common.partial_infer.utils import int64_array
from mo.graph.graph import Graph
from mo.ops.pooling import Pooling


class MeanToPool(BackReplacementPattern):
    enabled = True
    graph_condition = [lambda graph: graph.graph['layout'] == 'NCHW']

    def pattern(self):
        return dict(nodes=[('mean', dict(type='ReduceMean', kind='op'))], edges=[])

    def replace_pattern(self, graph: Graph, match: dict):
        node = match['mean']
        axes = node.in_port(1).data.get_value()
        shape = node.in_port(0).data.get_shape()
        if axes is None or len(shape) != 4 or not node.keep_dims:
            return
        axes = sorted(int(a) % 4 for a in np.atleast_1d(axes))
        if axes != [2, 3]:
            return
        window = np.array([1, 1, shape[2], shape[3]])
        pool = Pooling(graph, dict(name=node.name + '/pool', pool_method='avg', exclude_pad=True, window=window,
                                   stride=np.array([1, 1, 1, 1]), output_spatial_shape=None, pad_spatial_shape=np.array([[0, 0], [0, 0]]),
                                   pad=np.array([[0, 0], [0, 0], [0, 0], [0, 0]]), spatial_dims=np.array([2, 3]),
                                   batch_dims=np.array([0]), channel_dims=np.array([1]), rounding_type='floor')).create_node()
        node.in_port(0).get_connection().set_destination(pool.in_port(0))
        node.in_port(1).disconnect()
        node.out_port(0).get_connection().set_source(pool.out_port(0))
