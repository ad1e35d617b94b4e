from mo.front.subgraph_matcher import SubgraphMatch
from mo.front.tf.replacement import FrontReplacementFromConfigFileSubGraph
from mo.graph.graph import Graph
from mo.ops.op import Op
from extensions.ops.activation_ops import Swish


class ScopeSwish(FrontReplacementFromConfigFileSubGraph):
    replacement_id = 'ScopeSwish'

    def output_edges_match(self, graph: Graph, match: SubgraphMatch, new_sub_graph: dict):
        return {match.output_node(0)[0].id: new_sub_graph['swish'].id}

    def nodes_to_remove(self, graph: Graph, match: SubgraphMatch):
        return match.matched_nodes_names()

    def generate_sub_graph(self, graph: Graph, match: SubgraphMatch):
        (source, port), (reader, _) = match.input_nodes(0)
        node = match.node_by_pattern('.*sig$')
        assert node is not None and match.inputs_count() == 1 and {source.op, reader.op} == {'Sigmoid', 'Mul'}
        swish = Swish(graph, dict(name=match.scope + 'swish')).create_node([(source.in_node(0), source.in_edge(0)['out'])])
        return {'swish': swish}
