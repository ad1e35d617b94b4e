"""Says what a compiler of this version cannot do in a model, without compiling it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from aot.driver import stages
from aot.frontends.onnx.convert import UnconvertedError
from aot.ir.graph import Graph
from aot.options import CompileOptions
from runtime.errors import UnsupportedError


@dataclass(frozen=True, slots=True)
class Finding:
    """A layer that cannot be compiled, and why; without a layer the reason holds for the model."""

    layer: str
    operation: str
    opset: int | None
    reason: str

    def __str__(self) -> str:
        opset = f" (opset {self.opset})" if self.opset is not None else ""
        return f"{self.layer}: {self.operation}{opset}: {self.reason}" if self.layer else self.reason


def check(model: str | Path | Graph, options: CompileOptions | None = None) -> tuple[Finding, ...]:
    """What is unsupported; empty if the model can be compiled. ModelError where the model itself is wrong.

    Every node without a conversion is found at once. What lowering cannot do is found one by one.
    """
    try:
        assert stages(model, options).steps is not None
    except UnconvertedError as error:
        problems = error.problems
        return tuple(Finding(p.node, f"{p.domain}.{p.kind}".strip("."), p.opset or None, p.reason) for p in problems)
    except UnsupportedError as error:
        notes: list[str] = getattr(error, "__notes__", [])
        return (Finding("", "", None, "; ".join([str(error), *notes])),)
    return ()
