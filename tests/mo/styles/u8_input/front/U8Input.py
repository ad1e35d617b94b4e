import numpy as np

from openvino.tools.mo.front.common.partial_infer.utils import int64_array, shape_array
from openvino.tools.mo.front.common.replacement import FrontReplacementPattern
from openvino.tools.mo.front.tf.graph_utils import create_op_with_const_inputs, create_op_node_with_second_input
from openvino.tools.mo.graph.graph import Graph
from openvino.tools.mo.ops.Cast import Cast
from openvino.tools.mo.ops.elementwise import Mul, Sub
from openvino.tools.mo.ops.transpose import Transpose


class U8Input(FrontReplacementPattern):
    enabled = True
    mean = np.array([123.675, 116.28, 103.53], dtype=np.float32).reshape([1, 3, 1, 1])
    std = np.array([58.395, 57.12, 57.375], dtype=np.float32).reshape([1, 3, 1, 1])

    def find_and_replace_pattern(self, graph: Graph):
        for param in graph.get_op_nodes(op='Parameter'):
            n, c, h, w = param.shape
            param['shape'] = shape_array([n, h, w, c])
            param['data_type'] = np.uint8
            name = param.soft_get('name', param.id)
            readers = param.out_port(0).get_destinations()
            cast = Cast(graph, {'name': name + '/cast', 'dst_type': np.float32}).create_node()
            turned = create_op_node_with_second_input(graph, Transpose, int64_array([0, 3, 1, 2]), {'name': name + '/nchw'}, cast)
            centred = create_op_with_const_inputs(graph, Sub, {1: self.mean}, {'name': name + '/mean'}, turned)
            scaled = create_op_with_const_inputs(graph, Mul, {1: 1 / self.std}, {'name': name + '/scale'}, centred)
            param.out_port(0).get_connection().set_source(scaled.out_port(0))
            param.out_port(0).connect(cast.in_port(0))
