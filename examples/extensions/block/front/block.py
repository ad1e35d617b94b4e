"""Each block of a scope becomes one Concat of its input with itself."""

from openvino.tools.mo.front.subgraph_matcher import SubgraphMatch
from openvino.tools.mo.front.tf.replacement import FrontReplacementFromConfigFileSubGraph
from openvino.tools.mo.graph.graph import Graph
from openvino.tools.mo.ops.concat import Concat


class ReplaceBlock(FrontReplacementFromConfigFileSubGraph):
    """The configuration file says where the blocks are, what they read and what they give."""

    replacement_id = "Block"

    def generate_sub_graph(self, graph: Graph, match: SubgraphMatch) -> dict:
        node, port = match.input_nodes(0)[0]
        times = match.custom_replacement_desc.custom_attributes["times"]
        joined = Concat(graph, {"axis": 1, "in_ports_count": times, "name": f"{match.scope}/joined"}).create_node()
        for i in range(times):
            node.in_port(port).get_source().connect(joined.in_port(i))
        return {"joined": joined}

    def output_edges_match(self, graph: Graph, match: SubgraphMatch, new_sub_graph: dict) -> dict:
        node, port = match.output_node(0)
        return {(node.id, port): new_sub_graph["joined"].id}
