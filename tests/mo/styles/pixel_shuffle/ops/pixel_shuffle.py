from openvino.tools.mo.front.common.partial_infer.utils import shape_array, dynamic_dimension, is_fully_defined
from openvino.tools.mo.graph.graph import Graph, Node
from openvino.tools.mo.ops.op import Op


class PixelShuffle(Op):
    op = 'PixelShuffle'

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

    def supported_attrs(self):
        return ['upscale_factor', ('mode', lambda node: node.soft_get('mode', 'crd'))]

    @staticmethod
    def infer(node: Node):
        name = node.soft_get('name', node.id)
        shape = node.in_port(0).data.get_shape()
        assert shape is not None and len(shape) == 4, 'PixelShuffle {} wants four dimensions'.format(name)
        r = node.upscale_factor
        node.out_port(0).data.set_shape(shape_array([shape[0], shape[1] // (r * r), shape[2] * r, shape[3] * r]))
