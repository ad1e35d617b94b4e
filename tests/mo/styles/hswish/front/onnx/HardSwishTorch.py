import logging as log

import numpy as np

from mo.front.common.replacement import FrontReplacementSubgraph
from mo.graph.graph import Graph, rename_node
from mo.middle.pattern_match import check_value
from mo.front.subgraph_matcher import SubgraphMatch
from extensions.ops.activation_ops import HSwish


class HardSwishTorch(FrontReplacementSubgraph):
    enabled = True

    def pattern(self):
        return dict(
            nodes=[
                ('three', dict(op='Const')),
                ('add', dict(op='Add')),
                ('clamp', dict(op='Clamp')),
                ('mul', dict(op='Mul')),
                ('six', dict(op='Const')),
                ('div', dict(op='Div'))],
            edges=[
                ('three', 'add', {}),
                ('add', 'clamp', {'in': 0}),
                ('clamp', 'mul', {}),
                ('mul', 'div', {'in': 0}),
                ('six', 'div', {'in': 1})])

    def replace_sub_graph(self, graph: Graph, match: [dict, SubgraphMatch]):
        add, mul, div = match['add'], match['mul'], match['div']
        if not np.isclose(match['three'].value, 3) or not np.isclose(match['six'].value, 6):
            log.debug('not a hard swish: %s', div.name)
            return
        data_port = [i for i in (0, 1) if add.in_port(i).get_source().node.id != match['three'].id][0]
        other = [i for i in (0, 1) if mul.in_port(i).get_source().node.id != match['clamp'].id][0]
        if add.in_port(data_port).get_source() != mul.in_port(other).get_source():
            return
        hswish = HSwish(graph, {'name': div.name + '/hswish'}).create_node()
        add.in_port(data_port).get_connection().set_destination(hswish.in_port(0))
        mul.in_port(other).disconnect()
        div.out_port(0).get_connection().set_source(hswish.out_port(0))
        name = div.soft_get('name')
        rename_node(div, name + '/TBR')
        rename_node(hswish, name)
