import numpy as np

from openvino.tools.mo.front.common.partial_infer.utils import int64_array
from openvino.tools.mo.front.common.replacement import FrontReplacementOp
from openvino.tools.mo.front.tf.graph_utils import create_op_with_const_inputs
from openvino.tools.mo.graph.graph import Graph, Node, Port
from openvino.tools.mo.ops.broadcast import Broadcast
from openvino.tools.mo.ops.concat import Concat
from openvino.tools.mo.ops.gather import Gather
from openvino.tools.mo.ops.const import Const
from openvino.tools.mo.ops.elementwise import Sub
from openvino.tools.mo.ops.shape import Shape
from openvino.tools.mo.utils.shape import (get_canonical_axis_index_node, get_shape_values_by_indices_node,
                                           node_to_get_shape_value_of_indices, new_shape_node_from_shape_nodes)


class EdgePad(FrontReplacementOp):
    op = 'EdgePad'
    enabled = True

    def replace_op(self, graph: Graph, node: Node):
        name = node.soft_get('name', node.id)
        before, after = node.widths
        source = node.in_port(0).get_source()
        shape = Shape(graph, {'name': name + '/shape'}).create_node()
        source.connect(shape.in_port(0))
        size = node_to_get_shape_value_of_indices(shape, [3])
        rest = node_to_get_shape_value_of_indices(shape, [0, 1, 2])
        last = create_op_with_const_inputs(graph, Sub, {1: int64_array([1])}, {'name': name + '/last'}, size)
        parts = []
        for label, count, index in (('left', before, None), ('right', after, last)):
            edge = Gather(graph, {'name': name + '/' + label}).create_node()
            source.connect(edge.in_port(0))
            (Const(graph, {'value': int64_array([0])}).create_node() if index is None else index).out_port(0).connect(edge.in_port(1))
            Const(graph, {'value': int64_array(3)}).create_node().out_port(0).connect(edge.in_port(2))
            wide = Const(graph, {'value': int64_array([count])}).create_node()
            target = new_shape_node_from_shape_nodes([rest, wide])
            spread = Broadcast(graph, {'name': name + '/spread_' + label}).create_node()
            edge.out_port(0).connect(spread.in_port(0))
            target.out_port(0).connect(spread.in_port(1))
            parts.append(spread)
        joined = Concat(graph, {'name': name + '/joined', 'axis': 3, 'in_ports_count': 3}).create_node()
        parts[0].out_port(0).connect(joined.in_port(0))
        source.connect(joined.in_port(1))
        parts[1].out_port(0).connect(joined.in_port(2))
        return [joined.id]
