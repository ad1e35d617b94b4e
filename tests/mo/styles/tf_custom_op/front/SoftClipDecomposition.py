import numpy as np

from openvino.tools.mo.front.common.partial_infer.utils import float_array
from openvino.tools.mo.front.common.replacement import FrontReplacementOp
from openvino.tools.mo.front.tf.graph_utils import create_op_with_const_inputs
from openvino.tools.mo.graph.graph import Graph, Node, rename_nodes
from openvino.tools.mo.ops.activation_ops import Tanh
from openvino.tools.mo.ops.elementwise import Add, Mul, Sub


class SoftClipDecomposition(FrontReplacementOp):
    op = 'SoftClip'
    enabled = True

    def replace_op(self, graph: Graph, node: Node):
        name = node.soft_get('name', node.id)
        assert node.mode == 'tanh' and node.data_type == np.float32, node.mode
        centers = float_array(node.centers)  # along the channels, the last dimension of NHWC
        sub = create_op_with_const_inputs(graph, Sub, {1: centers}, {'name': name + '/sub'})
        node.in_port(0).get_connection().set_destination(sub.in_port(0))
        scaled = create_op_with_const_inputs(graph, Mul, {1: np.float32(1 / node.limit)}, {'name': name + '/div'}, sub)
        tanh = Tanh(graph, {'name': name + '/tanh'}).create_node([scaled])
        back = create_op_with_const_inputs(graph, Mul, {1: np.float32(node.limit)}, {'name': name + '/mul'}, tanh)
        add = create_op_with_const_inputs(graph, Add, {1: centers}, {'name': name + '/add'}, back)
        rename_nodes([(node, name + '/old'), (add, name)])
        return [add.id]
