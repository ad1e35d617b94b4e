"""The dimensions that Squeeze removes become its second input."""

from openvino.tools.mo.front.common.partial_infer.utils import int64_array
from openvino.tools.mo.front.common.replacement import FrontReplacementPattern
from openvino.tools.mo.graph.graph import Graph
from openvino.tools.mo.ops.const import Const
from openvino.tools.mo.utils.error import Error


class SqueezeInputs(FrontReplacementPattern):
    """Looks at all nodes itself, without a pattern."""

    enabled = True

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in graph.get_op_nodes(op="Squeeze"):
            name = node.soft_get("name", node.id)
            if len(node.in_nodes()) == 1 and node.has_valid("squeeze_dims"):
                dims = Const(graph, {"name": f"{name}/dims", "value": int64_array(node.squeeze_dims)}).create_node()
                node.in_port(1).connect(dims.out_port(0))
                del node["squeeze_dims"]
            elif len(node.in_nodes()) != 2:
                raise Error('Squeeze "{}": two inputs, or one and the attribute squeeze_dims', name)
