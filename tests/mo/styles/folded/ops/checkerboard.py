import numpy as np

from mo.graph.graph import Node, Graph
from mo.ops.op import Op


class Checkerboard(Op):
    op = 'Checkerboard'
    enabled = False

    def __init__(self, graph: Graph, attrs: dict):
        super().__init__(graph, {
            'kind': 'op',
            'type': __class__.op,
            'op': __class__.op,
            'infer': Checkerboard.infer,
            'in_ports_count': 1,
            'out_ports_count': 1,
        }, attrs)

    def supported_attrs(self):
        return ['low', 'high']

    @staticmethod
    def infer(node: Node):
        sizes = node.in_node(0).value
        if sizes is None:
            sizes = node.in_node(0).shape
        node.out_node(0).shape = np.array(sizes, dtype=np.int64)
        value = np.full(sizes, node.low, dtype=np.float32)
        value[tuple(np.array(np.indices(sizes).sum(axis=0) % 2 == 1).nonzero())] = node.high
        node.out_node(0).value = value
