import logging as log

from openvino.tools.mo.back.replacement import BackReplacementPattern
from openvino.tools.mo.front.common.partial_infer.utils import int64_array
from openvino.tools.mo.front.tf.graph_utils import create_op_with_const_inputs
from openvino.tools.mo.graph.graph import Graph
from openvino.tools.mo.ops.transpose import Transpose


class TransposedWeights(BackReplacementPattern):
    enabled = True
    force_shape_inference = True
    force_clean_up = True

    def run_after(self):
        from openvino.tools.mo.back.pass_separator import BackStart
        return [BackStart]

    @staticmethod
    def pattern():
        return dict(
            nodes=[('weights', dict(kind='op', type='Const')),
                   ('data', dict(kind='data', shape=lambda s: s is not None and len(s) == 2)),
                   ('matmul', dict(kind='op', type='MatMul', transpose_b=False))],
            edges=[('weights', 'data'), ('data', 'matmul', {'in': 1})])

    def replace_pattern(self, graph: Graph, match: dict):
        matmul = match['matmul']
        turned = create_op_with_const_inputs(graph, Transpose, {1: int64_array([1, 0])}, {'name': matmul.name + '/turned'})
        source = matmul.in_port(1).get_source()
        matmul.in_port(1).disconnect()
        source.connect(turned.in_port(0))
        turned.out_port(0).connect(matmul.in_port(1))
        matmul['transpose_b'] = True
        matmul['need_shape_inference'] = True
        log.info('turned the weights of %s', matmul.soft_get('name'))
