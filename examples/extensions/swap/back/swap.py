"""abs(-x) becomes abs(x), in the graph that is compiled."""

from openvino.tools.mo.back.replacement import BackReplacementPattern
from openvino.tools.mo.graph.graph import Graph


class DropSign(BackReplacementPattern):
    """Sub-graphs of the back phase have data nodes, too."""

    enabled = True
    force_clean_up = True

    def pattern(self) -> dict:
        return {
            "nodes": [("negative", {"type": "Negative"}), ("data", {"kind": "data"}), ("abs", {"type": "Abs"})],
            "edges": [("negative", "data"), ("data", "abs")],
        }

    def replace_pattern(self, graph: Graph, match: dict) -> None:
        source = match["negative"].in_port(0).get_source()
        match["abs"].in_port(0).disconnect()
        source.connect(match["abs"].in_port(0))
