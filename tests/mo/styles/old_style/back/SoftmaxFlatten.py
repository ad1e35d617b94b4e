import networkx as nx
import numpy as np

from mo.back.replacement import BackReplacementPattern
from mo.graph.graph import Graph, Node
from mo.middle.pattern_match import find_pattern_matches
from mo.ops.reshape import Reshape
from mo.ops.op import Op
from mo.front.common.partial_infer.utils import int64_array
from mo.ops.const import Const


class SoftmaxFlatten(BackReplacementPattern):
    enabled = True

    def find_and_replace_pattern(self, graph: Graph):
        for id in list(nx.topological_sort(graph)):
            node = Node(graph, id)
            if node.kind != 'op' or node.soft_get('type') != 'SoftMax':
                continue
            if node.axis != 3 or len(node.in_node().shape) != 4:
                continue
            shape = node.in_node().shape
            source = node.in_node()
            flat = int64_array([np.prod(shape[:3]), shape[3]])
            dim = Const(graph, {'value': flat, 'name': node.name + '/dim'}).create_node_with_data()
            graph.remove_edge(source.id, node.id)
            data = Reshape(graph, {'name': node.name + '/flat'}).create_node_with_data([source, dim])
            graph.add_edge(data.id, node.id, **{'in': 0})
            node['axis'] = 1
            out = node.out_node()
            inner = Op._create_data_node(graph, node.name + '/inner', {'shape': flat, 'value': None})
            graph.remove_edge(node.id, out.id)
            graph.add_edge(node.id, inner.id, **{'out': 0})
            back = Const(graph, {'value': int64_array(shape), 'name': node.name + '/back_dim'}).create_node_with_data()
            Reshape(graph, {'name': node.name + '/unflat'}).create_node_with_data([inner, back], data_nodes=out)
