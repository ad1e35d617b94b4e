from openvino.tools.mo.graph.graph import Graph
from openvino.tools.mo.ops.op import Op


class EdgePad(Op):
    op = 'EdgePad'
    enabled = True

    def __init__(self, graph: Graph, attrs: dict):
        super().__init__(graph, {'type': None, 'op': self.op, 'in_ports_count': 1, 'out_ports_count': 1}, attrs)
