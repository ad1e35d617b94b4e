from openvino.tools.mo.front.common.partial_infer.elemental import copy_shape_infer
from openvino.tools.mo.graph.graph import Graph, Node
from openvino.tools.mo.ops.op import Op


class SoftClip(Op):
    op = 'SoftClip'
    enabled = True

    def __init__(self, graph: Graph, attrs: dict):
        mandatory_props = {
            'type': self.op,
            'op': self.op,
            'version': 'extension',
            'in_ports_count': 1,
            'out_ports_count': 1,
            'infer': self.infer,
        }
        super().__init__(graph, mandatory_props, attrs)

    def backend_attrs(self):
        return ['limit', 'mode', ('centers', lambda node: ','.join(map(str, node.centers)))]

    @staticmethod
    def infer(node: Node):
        copy_shape_infer(node)
