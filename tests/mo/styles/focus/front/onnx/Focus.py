import numpy as np

from openvino.tools.mo.front.common.replacement import FrontReplacementSubgraph
from openvino.tools.mo.graph.graph import Graph, Node, rename_nodes
from openvino.tools.mo.ops.space_to_depth import SpaceToDepth
from openvino.tools.mo.ops.gather import Gather
from openvino.tools.mo.front.tf.graph_utils import create_op_with_const_inputs
from openvino.tools.mo.front.common.partial_infer.utils import int64_array


def const_of(node: Node, idx: int):
    source = node.in_port(idx).get_source()
    return None if source is None else source.node.soft_get('value', None)


class FocusToSpaceToDepth(FrontReplacementSubgraph):
    enabled = True

    def find_and_replace_pattern(self, graph: Graph):
        for concat in graph.get_op_nodes(op='Concat'):
            sources = [concat.in_port(i).get_source().node for i in concat.in_ports()]
            if len(sources) != 4 or any(s.soft_get('op') != 'Slice' for s in sources):
                continue
            outer = sources
            inner = [s.in_port(0).get_source().node for s in outer]
            if any(s.soft_get('op') != 'Slice' for s in inner):
                continue
            roots = {(s.in_port(0).get_source().node.id, s.in_port(0).get_source().idx) for s in inner}
            if len(roots) != 1:
                continue
            starts = [(int(const_of(i, 1)[0]), int(const_of(o, 1)[0])) for i, o in zip(inner, outer)]
            if starts != [(0, 0), (1, 0), (0, 1), (1, 1)] or any(int(const_of(s, 4)[0]) != 2 for s in inner + outer):
                continue
            name = concat.soft_get('name', concat.id)
            s2d = SpaceToDepth(graph, {'name': name + '/s2d', 'mode': 'blocks_first', 'block_size': 2}).create_node()
            inner[0].in_port(0).get_source().connect(s2d.in_port(0))
            c = self.channels
            order = int64_array([b * c + i for b in (0, 2, 1, 3) for i in range(c)])
            gather = create_op_with_const_inputs(graph, Gather, {1: order, 2: int64_array(1)}, {'name': name + '/order'}, s2d)
            concat.out_port(0).get_connection().set_source(gather.out_port(0))
            rename_nodes([(concat, name + '/old'), (gather, name)])

    channels = 3
