from mo.front.common.partial_infer.elemental import copy_shape_infer
from mo.graph.graph import Graph, Node
from mo.ops.op import Op


class ComplexAbs(Op):
    op = 'ComplexAbs'
    enabled = True

    def __init__(self, graph: Graph, attrs: dict):
        super().__init__(graph, {
            'type': None,
            'op': __class__.op,
            'in_ports_count': 1,
            'out_ports_count': 1,
            'infer': __class__.infer,
        }, attrs)

    def backend_attrs(self):
        return ['eps']

    @staticmethod
    def infer(node: Node):
        copy_shape_infer(node)
