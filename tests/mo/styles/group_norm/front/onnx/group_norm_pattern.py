import numpy as np

from openvino.tools.mo.front.common.partial_infer.utils import int64_array, mo_array
from openvino.tools.mo.front.common.replacement import FrontReplacementPattern
from openvino.tools.mo.front.tf.graph_utils import create_op_with_const_inputs
from openvino.tools.mo.graph.graph import Graph, rename_nodes
from openvino.tools.mo.ops.mvn import MVN


class TorchGroupNorm(FrontReplacementPattern):
    """Reshape -> InstanceNormalization -> Reshape"""
    enabled = True

    def run_before(self):
        from openvino.tools.mo.front.instance_normalization import InstanceNormalization
        return [InstanceNormalization]

    @staticmethod
    def pattern():
        return dict(
            nodes=[('first', dict(op='Reshape')),
                   ('norm', dict(op='InstanceNormalization')),
                   ('last', dict(op='Reshape'))],
            edges=[('first', 'norm', {'in': 0, 'out': 0}),
                   ('norm', 'last', {'in': 0, 'out': 0})])

    def replace_pattern(self, graph: Graph, match: dict):
        first, norm, last = match['first'], match['norm'], match['last']
        scale, bias = (norm.in_port(i).get_source().node for i in (1, 2))
        if scale.soft_get('op') != 'Const' or not np.all(scale.value == 1) or np.any(bias.value != 0):
            return
        mvn = create_op_with_const_inputs(
            graph, MVN, {1: int64_array([2])},
            {'name': norm.soft_get('name', norm.id) + '/mvn', 'eps': norm.epsilon, 'eps_mode': 'inside_sqrt',
             'normalize_variance': 1})
        norm.in_port(0).get_connection().set_destination(mvn.in_port(0))
        norm.out_port(0).get_connection().set_source(mvn.out_port(0))
        rename_nodes([(norm, norm.name + '/TBR'), (mvn, norm.name)])
