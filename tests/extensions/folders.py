"""Folders of extensions for tests, and models that use them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from onnx import helper

from aot.options import CompileOptions
from tests.frontends.onnx.models import model, save
from tests.frontends.openvino.test_reader import layer, network, parameter

X = np.array([[1, -2, 3], [-4, 5, -6]], np.float32)


OPERATION = '''
"""The square of what is above zero."""

from aot.ir.registry import op
from aot.opset.elementwise.unary import Real
from aot.codegen.ir.loops import Expr, prim


@op("extension")
class {name}(Real):
    """max(x, 0)^2"""

    def scalar(self, x: Expr) -> Expr:
        above = prim("max", x, 0.0)
        return above * above

    def reference(self, x):
        return np.square(np.maximum(x, 0))
'''


CONVERSION = """
from aot.frontends.onnx.registry import onnx


@onnx("{name}", domain="me")
def square(node, x):
    return node.build.{name}(x)
"""


RULES = '''
from aot.opset.elementwise.unary import Abs, Negative
from aot.passes.rewrite import rule


@rule(Abs)
def flip(node, op, build):
    """|x| -> -x"""
    return build.Negative(node.source(0))
'''


PASS = """
SEEN = []


class Count:
    run_after = ("decompose",)
    graph_condition = [lambda graph: graph.name != "absent"]

    def find_and_replace_pattern(self, graph):
        SEEN.append(len(graph.nodes))
"""


def folder(place: Path, **files: str) -> Path:
    """`middle_x="…"` becomes DIR/middle/x.py."""
    for name, text in files.items():
        path = place / "mine" / f"{name.replace('_', '/', 1)}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return place / "mine"


def options(extensions: Path) -> CompileOptions:
    return CompileOptions(extensions=extensions, level=None)


def absolute(place: Path) -> Path:
    return save(place, model([helper.make_node("Abs", ["x"], ["y"])], {"x": X}, ["y"]))


SCALED = """
from aot.ir.registry import op
from aot.opset.elementwise.unary import Real
{imports}


@op("extension")
class Scaled(Real):
    '''x * FACTOR'''

    def scalar(self, x):
        return x * FACTOR

    def reference(self, x):
        return x * x.dtype.type(FACTOR)
"""


def scaled(place: Path, factor: float, imports: str = "") -> Path:
    return folder(place, ops_scaled=SCALED.format(imports=imports or f"FACTOR = {factor}"))


def scaled_model(place: Path) -> Path:
    layers = [parameter(), layer(1, "s", "Scaled", "extension", inputs=(0,), outputs=(1,))]
    path = place / "scaled.xml"
    path.write_text(network([*layers, layer(2, "y", "Result", inputs=(0,))], "0.0->1.0 1.1->2.0"))
    return path
