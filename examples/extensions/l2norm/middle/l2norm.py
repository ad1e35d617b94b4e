"""x / max(sum(x * x), eps) ** 0.5 becomes NormalizeL2, where shapes and values are known."""

import numpy as np
from openvino.tools.mo.front.common.partial_infer.utils import int64_array
from openvino.tools.mo.graph.graph import Graph, rename_nodes
from openvino.tools.mo.middle.replacement import MiddleReplacementPattern
from openvino.tools.mo.ops.const import Const
from openvino.tools.mo.ops.normalize_l2 import NormalizeL2Op


class FuseL2Norm(MiddleReplacementPattern):
    """Between operations the pattern has data nodes, whose attributes are shape and value; a root is a Pow here."""

    enabled = True
    force_clean_up = True

    def pattern(self) -> dict:
        known = {"kind": "data", "value": lambda value: value is not None}
        data = ("input", "squared", "summed", "limited", "root")
        ops = {"square": "Mul", "sum": "ReduceSum", "maximum": "Maximum", "sqrt": "Pow", "div": "Div"}
        return {
            "nodes": [
                *((name, {"kind": "data"}) for name in data),
                ("axes", known),
                ("eps", known),
                ("half", {"kind": "data", "value": lambda value: value is not None and np.all(value == 0.5)}),
                *((name, {"kind": "op", "op": op}) for name, op in ops.items()),
            ],
            "edges": [
                ("input", "square", {"in": 0}),
                ("input", "square", {"in": 1}),
                ("square", "squared"),
                ("squared", "sum", {"in": 0}),
                ("axes", "sum", {"in": 1}),
                ("sum", "summed"),
                ("summed", "maximum"),
                ("eps", "maximum"),
                ("maximum", "limited"),
                ("limited", "sqrt", {"in": 0}),
                ("half", "sqrt", {"in": 1}),
                ("sqrt", "root"),
                ("input", "div", {"in": 0}),
                ("root", "div", {"in": 1}),
            ],
        }

    def replace_pattern(self, graph: Graph, match: dict) -> None:
        div = match["div"]
        name = div.soft_get("name", div.id)
        eps = float(np.asarray(match["eps"].value).reshape(-1)[0])
        norm = NormalizeL2Op(graph, {"name": f"{name}/l2", "eps": eps, "eps_mode": "max"}).create_node()
        axes = Const(graph, {"value": int64_array(match["axes"].value).reshape(-1)}).create_node()
        norm.in_port(0).connect(div.in_port(0).get_source())
        norm.in_port(1).connect(axes.out_port(0))
        div.out_port(0).get_connection().set_source(norm.out_port(0))
        rename_nodes([(div, f"{name}/removed"), (norm, name)])
