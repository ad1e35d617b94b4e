"""The end of a network, from certain nodes to certain nodes, becomes one operation."""

from openvino.tools.mo.front.subgraph_matcher import SubgraphMatch
from openvino.tools.mo.front.tf.replacement import FrontReplacementFromConfigFileSubGraph
from openvino.tools.mo.graph.graph import Graph
from openvino.tools.mo.ops.activation_ops import Mish


class ReplaceHead(FrontReplacementFromConfigFileSubGraph):
    """The configuration file names the nodes where the sub-graph begins and ends."""

    replacement_id = "Head"

    def generate_sub_graph(self, graph: Graph, match: SubgraphMatch) -> dict:
        node, port = match.single_input_node(0)
        mish = Mish(graph, {"name": "head"}).create_node()
        node.in_port(port).get_source().connect(mish.in_port(0))
        return {"mish": mish}

    def output_edges_match(self, graph: Graph, match: SubgraphMatch, new_sub_graph: dict) -> dict:
        node, port = match.output_node(0)
        return {(node.id, port): new_sub_graph["mish"].id}
