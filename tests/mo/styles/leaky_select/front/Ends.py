from mo.front.common.replacement import FrontReplacementPattern
from mo.front.tf.graph_utils import create_op_node_with_second_input
from mo.graph.graph import Graph
from mo.ops.const import Const
from extensions.ops.elementwise import Maximum, Minimum, Less
from extensions.ops.select import Select
import numpy as np


class LeakyBySelect(FrontReplacementPattern):
    """LeakyReLU as Select(x < 0, a x, x)"""
    enabled = True
    id = 'leaky_by_select'

    def find_and_replace_pattern(self, graph: Graph):
        from extensions.ops.elementwise import Mul
        for node in graph.get_op_nodes(op='LeakyReLU'):
            slope = node.soft_get('negative_slope', 0.01)
            name = node.soft_get('name', node.id)
            source = node.in_port(0).get_source()
            less = create_op_node_with_second_input(graph, Less, np.float32(0), {'name': name + '/less'})
            times = create_op_node_with_second_input(graph, Mul, np.float32(slope), {'name': name + '/times'})
            select = Select(graph, {'name': name + '/select'}).create_node()
            for port in (less.in_port(0), times.in_port(0), select.in_port(2)):
                source.connect(port)
            less.out_port(0).connect(select.in_port(0))
            times.out_port(0).connect(select.in_port(1))
            node.in_port(0).disconnect()
            node.out_port(0).get_connection().set_source(select.out_port(0))
