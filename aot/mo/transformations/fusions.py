"""Formulas that become one operation."""

from __future__ import annotations

from math import sqrt
from typing import Any, ClassVar

import numpy as np

from aot.mo.formulas import Found, Term, replace_formulas, term
from aot.mo.front.common.layout import get_features_dim
from aot.mo.front.tf.graph_utils import create_op_node_with_second_input
from aot.mo.graph.graph import Graph, Node
from aot.mo.implemented import transformation
from aot.mo.ops.library import library_class
from aot.mo.utils.arrays import int64_array

X = "x"
SHIFTED = term("Add", X, 3)
CLAMPED = term("Clamp", SHIFTED, 0, 6)
BOUNDED = term("Minimum", term("Maximum", SHIFTED, 0), 6)
CUT = term("Minimum", term("ReLU", SHIFTED), 6)
HALF_PLUS_ERF = term("Add", 1, term("Erf", term("Div", X, sqrt(2))))
CUBIC = term("Add", X, term("Mul", term("Pow", X, 3), 0.044715))
HALF_PLUS_TANH = term("Add", 1, term("Tanh", term("Mul", CUBIC, sqrt(2 / np.pi))))


class Fusion:
    """An operation of one input `x` stands for formulas of it."""

    module: ClassVar[str]
    name: ClassVar[str]
    attributes: ClassVar[dict[str, Any]] = {}
    formulas: ClassVar[list[Term]]

    def find_and_replace_pattern(self, graph: Graph) -> None:
        replace_formulas(graph, self.formulas, self.fused)

    def fused(self, graph: Graph, node: Node, operands: Found) -> Node | None:
        """Return the operation that is put in."""
        fused = library_class(self.module, self.name)(graph, dict(self.attributes)).create_node()
        operands[X].port.connect(fused.in_port(0))
        return fused


class _HSwish(Fusion):
    module, name = "activation_ops", "HSwish"


@transformation("front.HSwish_fusion")
class HSwishWithClamp(_HSwish):
    """x * clamp(x + 3, 0, 6) / 6"""

    formulas: ClassVar = [term("Mul", term("Mul", X, CLAMPED), 1 / 6)]


@transformation("front.HSwish_fusion")
class HSwishWithMinMax(_HSwish):
    """x * min(max(x + 3, 0), 6) / 6"""

    formulas: ClassVar = [term("Mul", term("Mul", X, BOUNDED), 1 / 6)]


class _HSigmoid(Fusion):
    module, name = "activation_ops", "HSigmoid"


@transformation("front.HSigmoid_fusion")
class HSigmoidWithClamp(_HSigmoid):
    """clamp(x + 3, 0, 6) / 6"""

    formulas: ClassVar = [term("Mul", CLAMPED, 1 / 6)]


@transformation("front.HSigmoid_fusion")
class HSigmoidWithMinMax(_HSigmoid):
    """min(max(x + 3, 0), 6) / 6"""

    formulas: ClassVar = [term("Mul", BOUNDED, 1 / 6)]


@transformation("front.HSigmoid_fusion")
class HSigmoidWithReluDiv(_HSigmoid):
    """min(relu(x + 3), 6) / 6"""

    formulas: ClassVar = [term("Div", CUT, 6)]


@transformation("front.HSigmoid_fusion")
class HSigmoidWithReluMul(_HSigmoid):
    """min(relu(x + 3), 6) * 1 / 6"""

    formulas: ClassVar = [term("Mul", CUT, 1 / 6)]


class _Gelu(Fusion):
    module, name = "gelu", "GeLUOP"


@transformation("front.GeLUMerger_Erf")
class GeLUMergerErf(_Gelu):
    """0.5 * x * (1 + erf(x / sqrt(2))), multiplied in any order"""

    attributes: ClassVar = {"approximation_mode": "erf"}
    formulas: ClassVar = [
        term("Mul", term("Mul", X, 0.5), HALF_PLUS_ERF),
        term("Mul", term("Mul", X, HALF_PLUS_ERF), 0.5),
        term("Mul", X, term("Mul", HALF_PLUS_ERF, 0.5)),
    ]


@transformation("front.GeLUMerger_Tanh")
class GeLUMergerTanh(_Gelu):
    """0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))"""

    attributes: ClassVar = {"approximation_mode": "tanh"}
    formulas: ClassVar = [
        term("Mul", term("Mul", HALF_PLUS_TANH, 0.5), X),
        term("Mul", term("Mul", X, 0.5), HALF_PLUS_TANH),
        term("Mul", term("Mul", X, HALF_PLUS_TANH), 0.5),
    ]


@transformation("middle.LeakyReluPattern")
class LeakyReLUFusion(Fusion):
    """max(x, slope * x)"""

    module, name = "activation_ops", "LeakyReLU"
    formulas: ClassVar = [term("Maximum", X, term("Mul", X, "slope"))]
    force_clean_up = True

    def fused(self, graph: Graph, node: Node, operands: Found) -> Node | None:
        slope = operands["slope"].value
        if slope is None or slope.size != 1:
            return None
        fused = library_class(self.module, self.name)(graph, {"negative_slope": slope.item()}).create_node()
        operands[X].port.connect(fused.in_port(0))
        return fused


@transformation("middle.L2NormFusing")
class L2NormToNorm(Fusion):
    """x * max(sum(x^2, axes), eps)^-0.5, over the channels or over all but the batch, of 2 to 4 dimensions"""

    formulas: ClassVar = [
        term("Mul", X, term("Pow", term("Maximum", term("ReduceSum", term("Pow", X, 2), "axes"), "eps"), -0.5))
    ]
    force_clean_up = True

    def fused(self, graph: Graph, node: Node, operands: Found) -> Node | None:
        shape, axes, eps = operands[X].port.data.get_shape(), operands["axes"].value, operands["eps"].value
        if shape is None or len(shape) not in (2, 3, 4) or axes is None or eps is None or eps.shape:
            return None
        rank = len(shape)
        summed = sorted(int(axis) % rank for axis in axes.reshape(-1))
        channels = get_features_dim(graph.graph["layout"], rank) if rank == 4 else 1
        if summed not in (list(range(1, rank)), [channels]):
            return None
        attrs = {"name": node.soft_get("name", node.id), "eps_mode": "max", "eps": eps}
        fused = create_op_node_with_second_input(
            graph, library_class("normalize_l2", "NormalizeL2Op"), int64_array(summed), attrs
        )
        operands[X].port.connect(fused.in_port(0))
        return fused
