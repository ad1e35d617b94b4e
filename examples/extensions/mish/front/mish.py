"""x * tanh(softplus(x)) becomes Mish(x)."""

from openvino.tools.mo.front.common.replacement import FrontReplacementSubgraph
from openvino.tools.mo.graph.graph import Graph, rename_nodes
from openvino.tools.mo.ops.activation_ops import Mish


class FuseMish(FrontReplacementSubgraph):
    """Replaces the three operations if both factors come from one tensor."""

    enabled = True

    def pattern(self) -> dict:
        return {
            "nodes": [("softplus", {"op": "SoftPlus"}), ("tanh", {"op": "Tanh"}), ("mul", {"op": "Mul"})],
            "edges": [("softplus", "tanh"), ("tanh", "mul")],
        }

    def replace_sub_graph(self, graph: Graph, match: dict) -> None:
        mul, softplus = match["mul"], match["softplus"]
        name = mul.soft_get("name", mul.id)
        other = int(mul.in_port(0).get_source().node.id == match["tanh"].id)
        source = softplus.in_port(0).get_source()
        if mul.in_port(other).get_source() != source:
            return
        mish = Mish(graph, {}).create_node()
        mish.in_port(0).connect(source)
        mul.out_port(0).get_connection().set_source(mish.out_port(0))
        rename_nodes([(mul, f"{name}/removed"), (mish, name)])
