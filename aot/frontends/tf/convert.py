"""The front pass that turns foreign operations of dialect `tf` into operations of the opset."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Any

from aot.frontends.calls import Conversion
from aot.frontends.conversion import Dialect, Facts, convert, foreign
from aot.frontends.tf.math.complex_numbers import refuse_complex
from aot.frontends.tf.registry import Call, conversion_of
from aot.frontends.unsupported import Problem, unconverted
from aot.ir.graph import Graph


def load_conversions() -> None:
    """Import the families of conversions, which fill the table; done when a graph of TensorFlow is met first."""
    for family in sorted(p for p in Path(__file__).parent.iterdir() if (p / "__init__.py").is_file()):
        for module in walk_packages([str(family)], f"{__package__}.{family.name}."):
            import_module(module.name)


def _conversion(kind: str, attrs: Facts) -> Conversion | None:
    del attrs
    return conversion_of(kind)


def _call(attrs: Facts, *parts: Any) -> Call:
    del attrs
    call = Call(*parts)
    refuse_complex(call, conversion_of(call.kind))
    return call


def _problem(node: str, kind: str, attrs: Facts, reason: str) -> Problem:
    del attrs
    return Problem(node, kind, "", 0, reason)


TENSORFLOW = Dialect("tf", "TensorFlow", _conversion, _call, _problem)


def _unknown(name: str, example: str) -> Problem:
    return Problem(name, "Placeholder", "", 0, f"its rank is not known: give the shape of the input, as {example}")


@dataclass(frozen=True, slots=True)
class TfToOpset:
    """Foreign operations become operations of the opset. Random numbers need a seed."""

    seed: int | None = None
    name: str = "tf_to_opset"
    phase: str = "front"
    required: bool = True
    run_not_recursively: bool = True

    def __call__(self, graph: Graph) -> bool:
        """Converts in place. Raises UnconvertedError, or ModelError where a node breaks a rule of TensorFlow."""
        if not any(foreign(node, TENSORFLOW) for node in graph.nodes.values()):
            return False
        unknown = [
            n.name for n in graph.parameters if getattr(n.op, "shape", ()) is None and n.out_port(0).destinations
        ]
        if unknown:
            example = f"--shape {unknown[0]}=1,224,224,3"
            raise unconverted(graph.file or graph.name, [_unknown(name, example) for name in unknown])
        load_conversions()
        return convert(graph, TENSORFLOW, self.seed)
