"""RegionYolo before each output, with the attributes of a configuration file."""

from openvino.tools.mo.front.no_op_eraser import NoOpEraser
from openvino.tools.mo.front.tf.replacement import FrontReplacementFromConfigFileGeneral
from openvino.tools.mo.graph.graph import Graph, Node
from openvino.tools.mo.ops.regionyolo import RegionYoloOp
from openvino.tools.mo.ops.result import Result


class AddRegion(FrontReplacementFromConfigFileGeneral):
    """Changes the whole graph, once for each entry with its id."""

    replacement_id = "Region"

    def run_after(self) -> list:
        return [NoOpEraser]

    def transform_graph(self, graph: Graph, replacement_descriptions: dict) -> None:
        for output in [name for name, node in graph.nodes(data=True) if node.get("op") == "Result"]:
            last = Node(graph, output).in_node(0)
            attrs = {"name": f"{last.id}/region", "axis": 1, "end_axis": -1, **replacement_descriptions}
            region = RegionYoloOp(graph, attrs).create_node([last])
            Result(graph).create_node([region])
            graph.remove_node(output)
