import numpy as np

from openvino.tools.mo.graph.graph import Graph
from openvino.tools.mo.middle.pass_separator import MiddleFinish, MiddleStart
from openvino.tools.mo.middle.replacement import MiddleReplacementPattern


class FoldScale(MiddleReplacementPattern):
    """A scale behind a convolution goes into its weights, whose filters are the last dimension."""
    enabled = True

    def run_after(self):
        return [MiddleStart]

    def run_before(self):
        return [MiddleFinish]

    @staticmethod
    def pattern():
        return dict(
            nodes=[('weights', dict(kind='data', value=lambda v: v is not None)),
                   ('conv', dict(kind='op', type='Convolution')),
                   ('conv_d', dict(kind='data')),
                   ('scale_d', dict(kind='data', value=lambda v: v is not None)),
                   ('mul', dict(kind='op', op='Mul')),
                   ('mul_d', dict(kind='data'))],
            edges=[('weights', 'conv', {'in': 1}), ('conv', 'conv_d'), ('conv_d', 'mul'), ('scale_d', 'mul'),
                   ('mul', 'mul_d')])

    @staticmethod
    def replace_pattern(graph: Graph, match: dict):
        conv, mul = match['conv'], match['mul']
        source = conv.in_port(1).get_source().node
        source['value'] = source.value * match['scale_d'].value
        match['weights'].value = source.value
        mul.out_port(0).get_connection().set_source(conv.out_port(0))
        for port in mul.in_ports().values():
            port.disconnect()
