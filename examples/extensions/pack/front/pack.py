"""Pack becomes Unsqueeze of each input and Concat."""

from openvino.tools.mo.front.common.partial_infer.utils import int64_array
from openvino.tools.mo.front.common.replacement import FrontReplacementOp
from openvino.tools.mo.front.tf.graph_utils import create_op_with_const_inputs
from openvino.tools.mo.graph.graph import Graph, Node, rename_nodes
from openvino.tools.mo.ops.concat import Concat
from openvino.tools.mo.ops.unsqueeze import Unsqueeze


class UnpackInputs(FrontReplacementOp):
    """Replaces each Pack."""

    op = "Pack"
    enabled = True

    def replace_op(self, graph: Graph, node: Node) -> list:
        name = node.soft_get("name", node.id)
        joined = Concat(graph, {"axis": node.axis, "in_ports_count": len(node.in_ports())}).create_node()
        for i in node.in_ports():
            one = create_op_with_const_inputs(graph, Unsqueeze, {1: int64_array([node.axis])}, {"name": f"{name}/{i}"})
            node.in_port(i).get_connection().set_destination(one.in_port(0))
            one.out_port(0).connect(joined.in_port(i))
        rename_nodes([(node, f"{name}/removed"), (joined, name)])
        return [joined.id]
