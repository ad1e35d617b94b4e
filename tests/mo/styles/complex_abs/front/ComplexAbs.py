import numpy as np

from extensions.ops.elementwise import Pow, Add
from extensions.ops.ReduceOps import ReduceSum
from mo.front.common.partial_infer.utils import int64_array
from mo.front.common.replacement import FrontReplacementOp
from mo.graph.graph import Graph, Node
from mo.ops.const import Const


class ComplexAbs(FrontReplacementOp):
    """sqrt(re^2 + im^2 + eps), where re and im lie along the last axis"""
    op = "ComplexAbs"
    enabled = True

    @staticmethod
    def constant(graph, value):
        return Const(graph, {'value': value}).create_node()

    def replace_op(self, graph: Graph, node: Node):
        data = node.in_node(0)
        squares = Pow(graph, {'name': node.id + '/squares'}).create_node([data, self.constant(graph, np.float32(2))])
        added = ReduceSum(graph, {'name': node.id + '/added', 'keep_dims': False}).create_node(
            [squares, self.constant(graph, int64_array(-1))])
        safe = Add(graph, {'name': node.id + '/safe'}).create_node([added, self.constant(graph, np.float32(node.eps))])
        root = Pow(graph, {'name': node.id + '/root'}).create_node([safe, self.constant(graph, np.float32(0.5))])
        return [root.id]
