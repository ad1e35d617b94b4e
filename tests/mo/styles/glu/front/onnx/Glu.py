from extensions.ops.activation_ops import Sigmoid
from extensions.ops.elementwise import Mul
from extensions.ops.split import AttributedSplit
from mo.front.common.replacement import FrontReplacementOp
from mo.graph.graph import Graph, Node


class Glu(FrontReplacementOp):
    op = 'GLU'
    enabled = True

    def replace_op(self, graph: Graph, node: Node):
        split = AttributedSplit(graph, dict(name=node.id + '/split', axis=node.axis, num_splits=2)).create_node([node.in_node(0)])
        gate = Sigmoid(graph, dict(name=node.id + '/gate')).create_node([(split, 1)])
        mul = Mul(graph, dict(name=node.id + '/mul')).create_node([(split, 0), (gate, 0)])
        return [mul.id]
