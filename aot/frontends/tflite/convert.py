"""The front pass that turns foreign operations of dialect `tflite` into operations of the opset."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Any

from aot.frontends.calls import Conversion
from aot.frontends.conversion import Dialect, Facts, convert, foreign
from aot.frontends.tf import convert as tf
from aot.frontends.tflite.registry import Call, conversion_of
from aot.frontends.unsupported import Problem
from aot.ir.graph import Graph


def load_conversions() -> None:
    """Import the families of conversions, which fill the table; done when a graph of this dialect is met first."""
    tf.load_conversions()  # many operations are TensorFlow's
    for family in sorted(p for p in Path(__file__).parent.iterdir() if (p / "__init__.py").is_file()):
        for module in walk_packages([str(family)], f"{__package__}.{family.name}."):
            import_module(module.name)


def _conversion(kind: str, attrs: Facts) -> Conversion | None:
    sides = (attrs.get("taken", ()), attrs.get("given", ())[:1])
    return conversion_of(kind, all(any(t is not None and t.quantization is not None for t in side) for side in sides))


def _call(attrs: Facts, *parts: Any) -> Call:
    del attrs
    return Call(*parts)


def _problem(node: str, kind: str, attrs: Facts, reason: str) -> Problem:
    del attrs
    return Problem(node, kind, "", 0, reason)


TFLITE = Dialect("tflite", "TensorFlow Lite", _conversion, _call, _problem)


@dataclass(frozen=True, slots=True)
class TfliteToOpset:
    """Foreign operations become operations of the opset. Random numbers need a seed."""

    seed: int | None = None
    name: str = "tflite_to_opset"
    phase: str = "front"
    required: bool = True
    run_not_recursively: bool = True

    def __call__(self, graph: Graph) -> bool:
        """Converts in place. Raises UnconvertedError, or ModelError where a node breaks a rule of TensorFlow Lite."""
        if not any(foreign(node, TFLITE) for node in graph.nodes.values()):
            return False
        load_conversions()
        return convert(graph, TFLITE, self.seed)
