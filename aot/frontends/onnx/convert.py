"""The front pass that turns foreign operations of dialect `onnx` into operations of the opset."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from aot.frontends.calls import Conversion
from aot.frontends.conversion import Dialect, Facts, convert
from aot.frontends.onnx.registry import Call, conversion_of
from aot.frontends.unsupported import Problem
from aot.ir.graph import Graph

WINGS = ("arrays", "image", "math", "microsoft", "neural", "tabular")  # folders of conversions
for _wing in WINGS:
    for _module in iter_modules([str(Path(__file__).parent / _wing)]):
        import_module(f"{__package__}.{_wing}.{_module.name}")
import_module(f"{__package__}.control_flow")


def _conversion(kind: str, attrs: Facts) -> Conversion | None:
    return conversion_of(attrs["domain"], kind)


def _call(attrs: Facts, *parts: Any) -> Call:
    return Call(*parts, opset=attrs["opset"])


def _problem(node: str, kind: str, attrs: Facts, reason: str) -> Problem:
    return Problem(node, kind, attrs["domain"], attrs["opset"], reason)


ONNX = Dialect("onnx", "ONNX", _conversion, _call, _problem)


@dataclass(frozen=True, slots=True)
class OnnxToOpset:
    """Foreign operations become operations of the opset. Random numbers need a seed."""

    seed: int | None = None
    name: str = "onnx_to_opset"
    phase: str = "front"
    required: bool = True
    run_not_recursively: bool = True

    def __call__(self, graph: Graph) -> bool:
        """Converts in place. Raises UnconvertedError, or ModelError where a node breaks a rule of ONNX."""
        return convert(graph, ONNX, self.seed)
