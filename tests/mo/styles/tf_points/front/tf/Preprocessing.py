import numpy as np

from openvino.tools.mo.front.subgraph_matcher import SubgraphMatch
from openvino.tools.mo.front.tf.graph_utils import create_op_with_const_inputs
from openvino.tools.mo.front.tf.replacement import FrontReplacementFromConfigFileSubGraph
from openvino.tools.mo.graph.graph import Graph
from openvino.tools.mo.ops.elementwise import Mul


class Preprocessing(FrontReplacementFromConfigFileSubGraph):
    """Replaces the nodes between two points by one multiplication."""
    replacement_id = 'Preprocessing'

    def run_before(self):
        from openvino.tools.mo.front.Pack import Pack
        return [Pack]

    def nodes_to_remove(self, graph: Graph, match: SubgraphMatch):
        new_nodes_to_remove = match.matched_nodes_names()
        # the nodes at both ends stay
        new_nodes_to_remove.remove(match.single_input_node(0)[0].id)
        new_nodes_to_remove.remove(match.output_node(0)[0].id)
        return new_nodes_to_remove

    def generate_sub_graph(self, graph: Graph, match: SubgraphMatch):
        factor = match.custom_replacement_desc.custom_attributes['factor']
        first = match.single_input_node(0)[0]
        last = match.output_node(0)[0]
        mul = create_op_with_const_inputs(graph, Mul, {1: np.array(factor, dtype=np.float32)}, {'name': 'factor'})
        first.out_port(0).connect(mul.in_port(0))
        last.in_port(0).disconnect()
        mul.out_port(0).connect(last.in_port(0))
        return {}
