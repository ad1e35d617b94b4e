from mo.front.common.replacement import FrontReplacementPattern
from mo.graph.graph import Graph, Node, add_opoutput
from extensions.front.pass_separator import FrontStart, FrontFinish
import logging as log


class CutTail(FrontReplacementPattern):
    enabled = True
    run_not_recursively = True
    ends = ['head/a', 'head/b']

    def run_after(self):
        return [FrontStart]

    def run_before(self):
        return [FrontFinish]

    def find_and_replace_pattern(self, graph: Graph):
        for result in list(graph.get_op_nodes(op='Result')):
            graph.remove_node(result.id)
        for name in self.ends:
            ids = graph.get_nodes_with_attributes(name=name)
            assert len(ids) == 1, ids
            add_opoutput(graph, ids[0], 0, cut=False, user_defined_name=name)
        log.debug('outputs now: {}'.format([n.name for n in graph.get_op_nodes(op='Result')]))
        graph.clean_up()
