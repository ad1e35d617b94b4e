from openvino.tools.mo.front.common.partial_infer.utils import int64_array
from openvino.tools.mo.front.tf.graph_utils import create_op_with_const_inputs, create_op_node_with_second_input
from openvino.tools.mo.graph.graph import Graph, rename_nodes
from openvino.tools.mo.middle.replacement import MiddleReplacementPattern
from openvino.tools.mo.ops.reshape import Reshape
from openvino.tools.mo.ops.transpose import Transpose


class PixelShuffleToTranspose(MiddleReplacementPattern):
    enabled = True
    force_clean_up = True

    def run_after(self):
        from openvino.tools.mo.middle.pass_separator import MiddleStart
        return [MiddleStart]

    def pattern(self):
        return dict(nodes=[('op', dict(kind='op', op='PixelShuffle'))], edges=[])

    def replace_pattern(self, graph: Graph, match: dict):
        node = match['op']
        n, c, h, w = node.in_port(0).data.get_shape()
        r = node.upscale_factor
        name = node.soft_get('name', node.id)
        split = create_op_node_with_second_input(graph, Reshape, int64_array([n, c // r ** 2, r, r, h, w]),
                                                 {'name': name + '/split'})
        node.in_port(0).get_connection().set_destination(split.in_port(0))
        turn = create_op_with_const_inputs(graph, Transpose, {1: int64_array([0, 1, 4, 2, 5, 3])},
                                           {'name': name + '/turn'}, split)
        join = create_op_with_const_inputs(graph, Reshape, {1: int64_array([n, c // r ** 2, h * r, w * r])},
                                           {'name': name + '/join'}, turn)
        node.out_port(0).get_connection().set_source(join.out_port(0))
        rename_nodes([(node, name + '/delete'), (join, name)])
