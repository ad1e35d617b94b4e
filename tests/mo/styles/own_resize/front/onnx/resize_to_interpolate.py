import numpy as np

from extensions.ops.interpolate import Interpolate
from mo.front.common.partial_infer.utils import int64_array, float_array
from mo.front.common.replacement import FrontReplacementOp
from mo.front.tf.graph_utils import create_op_with_const_inputs
from mo.graph.graph import Graph, Node
from mo.ops.shape import Shape
from mo.ops.strided_slice import StridedSlice
from extensions.ops.elementwise import Mul
from extensions.ops.Cast import Cast


class OwnUpsampleToInterpolate(FrontReplacementOp):
    op = 'OwnUpsample'
    enabled = True

    def replace_op(self, graph: Graph, node: Node):
        name = node.soft_get('name', node.id)
        factor = node.in_port(2).get_source().node.value[2:]
        shape = Shape(graph, {'name': name + '/shape'}).create_node()
        node.in_port(0).get_source().connect(shape.in_port(0))
        spatial = create_op_with_const_inputs(
            graph, StridedSlice, {1: int64_array([2]), 2: int64_array([4]), 3: int64_array([1])},
            {'name': name + '/spatial', 'begin_mask': int64_array([1]), 'end_mask': int64_array([1]),
             'new_axis_mask': int64_array([0]), 'shrink_axis_mask': int64_array([0]), 'ellipsis_mask': int64_array([0])}, shape)
        times = create_op_with_const_inputs(graph, Mul, {1: int64_array(factor)}, {'name': name + '/times'}, spatial)
        made = Interpolate(graph, {
            'name': name + '/interpolate', 'mode': {'nearest': 'nearest', 'linear': 'linear_onnx'}[node.mode],
            'version': 'opset4', 'coordinate_transformation_mode': 'asymmetric', 'nearest_mode': 'floor',
            'shape_calculation_mode': 'sizes', 'antialias': 0, 'pads_begin': int64_array([0]), 'pads_end': int64_array([0]),
            'cube_coeff': -0.75, 'in_ports_count': 4}).create_node()
        node.in_port(0).get_connection().set_destination(made.in_port(0))
        times.out_port(0).connect(made.in_port(1))
        from mo.ops.const import Const
        Const(graph, {'value': float_array(factor)}).create_node().out_port(0).connect(made.in_port(2))
        Const(graph, {'value': int64_array([2, 3])}).create_node().out_port(0).connect(made.in_port(3))
        return [made.id]
