"""Finds the layers of a model that this compiler cannot compile, without compiling it."""

from __future__ import annotations

from pathlib import Path

from aot.codegen.dataclass import dataclass
from aot.compilation.driver import stages
from aot.frontends.unsupported import UnconvertedError
from aot.ir.graph import Graph
from aot.options import CompileOptions
from aot.runtime.errors import UnsupportedError


@dataclass(frozen=True, slots=True)
class Finding:
    """A layer that cannot be compiled, the reason, and advice; without a layer the reason holds for the model."""

    layer: str
    operation: str
    opset: int | None
    reason: str
    advice: str

    def __str__(self) -> str:
        opset = f" (opset {self.opset})" if self.opset is not None else ""
        prefix = f"{self.layer}: {self.operation}{opset}: " if self.layer else ""
        return f"{prefix}{self.reason} [{self.advice}]"


ADVICE = (  # parts of reasons, with the next step
    ("known at compile time", "fix the input it comes from: --value INPUT=VALUE, or --shape for sizes"),
    ("rank is not known", "give the shapes of inputs: --shape INPUT=1,224,224,3"),
    ("there is no ", "export the model without it, or write it: docs/develop/add-an-op.md, and --extensions"),
    ("random numbers", "make the numbers outside and give them as an input"),
    ("training mode", "export the model for inference"),
    ("string", "do outside of the model what is more than to move strings"),
    ("got sequence", "give the tensors one by one, or stacked"),
    ("got optional", "export the model with or without that input"),
    ("opset", "convert the model: onnx.version_converter.convert_version"),
)
OTHERWISE = "export that part of the model in another way, or leave it outside"


def _advice(reason: str) -> str:
    return next((advice for text, advice in ADVICE if text in reason), OTHERWISE)


def check(model: str | Path | Graph, options: CompileOptions | None = None) -> tuple[Finding, ...]:
    """Return a finding for each unsupported layer; none if the model compiles. ModelError for a wrong model.

    Every node without a conversion is found at once. Limits of lowering are found one by one.
    """
    try:
        _ = stages(model, options).program
    except UnconvertedError as error:
        problems = error.problems
        return tuple(
            Finding(p.node, p.operation, p.opset or None, p.reason, error.advice or _advice(p.reason)) for p in problems
        )
    except UnsupportedError as error:
        notes: list[str] = getattr(error, "__notes__", [])
        reason = "; ".join([str(error), *(note for note in notes if note != error.advice)])
        return (Finding("", "", None, reason, error.advice or _advice(reason)),)
    return ()
