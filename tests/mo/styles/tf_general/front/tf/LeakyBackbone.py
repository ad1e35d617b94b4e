import logging as log

from openvino.tools.mo.front.no_op_eraser import NoOpEraser
from openvino.tools.mo.front.tf.replacement import FrontReplacementFromConfigFileGeneral
from openvino.tools.mo.graph.graph import Graph, rename_nodes
from openvino.tools.mo.ops.activation_ops import LeakyReLU
from openvino.tools.mo.ops.result import Result
from openvino.tools.mo.utils.error import Error


class LeakyBackbone(FrontReplacementFromConfigFileGeneral):
    """Named activations become leaky ones, and the network ends at named nodes."""
    replacement_id = 'LeakyBackbone'

    def run_after(self):
        return [NoOpEraser]

    def transform_graph(self, graph: Graph, replacement_descriptions: dict):
        ids = {node.soft_get('name', node.id): node for node in graph.get_op_nodes()}
        for name, slope in replacement_descriptions['slopes'].items():
            if name not in ids:
                raise Error('There is no node "{}" in the graph. Check "[REPLACEMENT_ID]".', name)
            relu = ids[name]
            assert relu.op == 'ReLU', relu.op
            leaky = LeakyReLU(graph, {'name': name + '/leaky', 'negative_slope': slope}).create_node()
            relu.in_port(0).get_connection().set_destination(leaky.in_port(0))
            relu.out_port(0).get_connection().set_source(leaky.out_port(0))
            rename_nodes([(relu, name + '/old'), (leaky, name)])
        for result in graph.get_op_nodes(op='Result'):
            log.debug('Result %s is removed', result.id)
            result.in_port(0).disconnect()
            graph.remove_node(result.id)
        for name in replacement_descriptions['ends']:
            node = graph.get_op_nodes(name=name)[0]
            node.out_port(0).connect(Result(graph, {'name': name + '/end'}).create_node().in_port(0))
