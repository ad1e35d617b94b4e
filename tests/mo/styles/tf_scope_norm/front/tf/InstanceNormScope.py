import numpy as np

from extensions.ops.mvn import MVN
from mo.front.common.partial_infer.utils import int64_array
from mo.front.subgraph_matcher import SubgraphMatch
from mo.front.tf.graph_utils import create_op_with_const_inputs
from mo.front.tf.replacement import FrontReplacementFromConfigFileSubGraph
from mo.graph.graph import Graph, Node


class InstanceNormScope(FrontReplacementFromConfigFileSubGraph):
    """A scope that computes a mean and a variance becomes one MVN."""
    replacement_id = 'InstanceNormScope'

    def nodes_to_remove(self, graph: Graph, match: SubgraphMatch):
        return match.matched_nodes_names()

    def output_edges_match(self, graph: Graph, match: SubgraphMatch, new_sub_graph: dict):
        return {match.output_node(0)[0].id: new_sub_graph['mvn'].id}

    def generate_sub_graph(self, graph: Graph, match: SubgraphMatch):
        attrs = match.custom_replacement_desc.custom_attributes
        reader, port = match.single_input_node(0) if len(match.input_nodes(0)) == 1 else match.input_nodes(0)[0]
        source = reader.in_node(port)
        mvn = create_op_with_const_inputs(graph, MVN, {1: int64_array(attrs['axes'])}, {
            'name': match.scope + '/mvn', 'eps': attrs['eps'], 'eps_mode': 'inside_sqrt', 'normalize_variance': 1,
            'version': 'opset6'})
        mvn.in_port(0).connect(Node(graph, source.id).out_port(0))
        return {'mvn': mvn}
