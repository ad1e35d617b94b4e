import numpy as np

from mo.graph.graph import Graph
from mo.middle.replacement import MiddleReplacementPattern
from extensions.middle.pass_separator import MiddleStart, MiddleFinish


class FoldScale(MiddleReplacementPattern):
    enabled = True

    def run_after(self):
        return [MiddleStart]

    def run_before(self):
        return [MiddleFinish]

    @staticmethod
    def pattern():
        return dict(
            nodes=[('conv', dict(kind='op', type='Convolution')),
                   ('conv_d', dict(kind='data')),
                   ('scale', dict(kind='op', op='Const')),
                   ('scale_d', dict(kind='data', value=lambda v: v is not None)),
                   ('mul', dict(kind='op', op='Mul')),
                   ('mul_d', dict(kind='data'))],
            edges=[('conv', 'conv_d'), ('conv_d', 'mul'), ('scale', 'scale_d'), ('scale_d', 'mul'), ('mul', 'mul_d')])

    @staticmethod
    def replace_pattern(graph: Graph, match: dict):
        conv, mul = match['conv'], match['mul']
        if len(match['conv_d'].out_nodes()) != 1:
            return
        weights = conv.in_node(1)
        scale = match['scale_d'].value
        if weights.value is None or scale.size not in (1, weights.shape[0]):
            return
        weights.value = weights.value * np.reshape(scale, [-1] + [1] * (weights.value.ndim - 1)).astype(weights.value.dtype)
        producer = conv.in_port(1).get_source().node
        producer['value'] = weights.value
        graph.remove_edge(match['conv_d'].id, mul.id)
        mul.out_port(0).get_connection().set_source(conv.out_port(0))
