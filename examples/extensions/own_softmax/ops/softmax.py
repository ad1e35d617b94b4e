"""A class of operations: defaults, and the attributes that files hold."""

from openvino.tools.mo.graph.graph import Graph
from openvino.tools.mo.ops.op import Op


class OwnSoftmax(Op):
    """SoftMax of opset1."""

    op = "SoftMax"
    enabled = False

    def __init__(self, graph: Graph, attrs: dict) -> None:
        defaults = {
            "type": self.op,
            "op": self.op,
            "version": "opset1",
            "axis": 1,
            "in_ports_count": 1,
            "out_ports_count": 1,
        }
        super().__init__(graph, defaults, attrs)

    def supported_attrs(self) -> list:
        return ["axis"]
