import numpy as np

from openvino.tools.mo.front.common.partial_infer.utils import int64_array
from openvino.tools.mo.front.common.replacement import FrontReplacementOp
from openvino.tools.mo.front.tf.graph_utils import create_op_with_const_inputs
from openvino.tools.mo.graph.graph import Graph, Node, rename_nodes
from openvino.tools.mo.ops.elementwise import Add, Mul
from openvino.tools.mo.ops.mvn import MVN


class SkipLayerNorm(FrontReplacementOp):
    op = 'SkipLayerNorm'
    enabled = True

    def replace_sub_graph(self, graph: Graph, match: dict):
        node = match['op']
        name = node.soft_get('name', node.id)
        total = Add(graph, {'name': name + '/skip'}).create_node()
        node.in_port(0).get_connection().set_destination(total.in_port(0))
        node.in_port(1).get_connection().set_destination(total.in_port(1))
        if len(node.in_nodes()) > 2 and node.is_in_port_connected(4):
            biased = Add(graph, {'name': name + '/biased'}).create_node()
            total.out_port(0).connect(biased.in_port(0))
            node.in_port(4).get_connection().set_destination(biased.in_port(1))
            total = biased
        mvn = create_op_with_const_inputs(graph, MVN, {1: int64_array([-1])},
                                          {'name': name + '/mvn', 'eps': node.epsilon, 'eps_mode': 'inside_sqrt',
                                           'normalize_variance': 1, 'across_channels': 1}, total)
        mul = Mul(graph, {'name': name + '/gamma'}).create_node()
        add = Add(graph, {'name': name + '/beta'}).create_node()
        mvn.out_port(0).connect(mul.in_port(0))
        node.in_port(2).get_connection().set_destination(mul.in_port(1))
        mul.out_port(0).connect(add.in_port(0))
        node.in_port(3).get_connection().set_destination(add.in_port(1))
        node.out_port(0).get_connection().set_source(add.out_port(0))
        rename_nodes([(node, name + '/TBR'), (add, name)])
