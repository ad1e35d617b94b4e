"""From a module of PyTorch to a compiled model in one call: export, compile, compare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Unpack

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.compilation.driver import compile_model
from aot.options import CompileOptions
from aot.options.typed import CompileKeywords
from aot.runtime.errors import MissingError, ModelError, UsageError
from aot.runtime.model import CompiledModel

NEAR = 1e-4  # error relative to an output's largest number: f32 sums in another order


@dataclass(frozen=True, slots=True)
class Exported:
    """A compiled module. `difference`: from PyTorch, relative to the largest number of an output; None: not compared.

    `path`: the library; None if it was compiled in memory.
    """

    model: CompiledModel
    path: Path | None
    difference: float | None


def export(
    module: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    output: str | Path | None = None,
    tolerance: float | None = NEAR,
    options: CompileOptions | None = None,
    **keywords: Unpack[CompileKeywords],
) -> Exported:
    """Export a module for its arguments, compile it, and compare both on them.

    `dynamic_shapes`: as for `torch.export.export`. `output`: where the library is written; None: compiled in memory.
    `tolerance`: the largest difference allowed, relative to the largest number of an output; None: nothing is
    compared. `options`, `keywords`: as for `aot.compile_model`.

    Raises MissingError without PyTorch, UsageError for a module in training, ModelError if the results differ, and
    the errors of `aot.compile_model`.
    """
    torch = torch_of("aot.export")
    if getattr(module, "training", False):
        raise UsageError("aot.export: the module must be in evaluation (module.eval()), got one in training")
    with torch.no_grad():
        program = torch.export.export(module, tuple(args), dict(kwargs or {}), dynamic_shapes=dynamic_shapes)
        model, path = compiled(program, output, options, keywords)
        difference = None if tolerance is None else _difference(torch, module, model, args, kwargs or {})
    if difference is not None and tolerance is not None and not difference <= tolerance:
        rule = f"results within {tolerance:g} of the largest number of an output"
        raise ModelError(f"aot.export: {rule}, got a difference of {difference:.2g}")
    return Exported(model, path, difference)


def torch_of(caller: str) -> Any:
    """Return the package torch; MissingError if it is not installed."""
    if find_spec("torch") is None:
        raise MissingError(f"{caller}: needs PyTorch: pip install 'aot[torch]'")
    return import_module("torch")


def compiled(
    program: Any, output: str | Path | None, options: CompileOptions | None, keywords: CompileKeywords
) -> tuple[CompiledModel, Path | None]:
    """Compile an exported program in memory, or to a library."""
    path = None if output is None else Path(output)
    with TemporaryDirectory() as folder:
        file = Path(folder) / f"{'module' if path is None else path.stem}.pt2"
        import_module("torch").export.save(program, file)
        return compile_model(file, options, output=path, **keywords), path


def _difference(torch: Any, module: Any, model: CompiledModel, args: Sequence[Any], kwargs: Mapping[str, Any]) -> float:
    """Return the largest difference of all outputs, each relative to its largest number."""
    leaves = torch.utils._pytree.tree_leaves
    arrays = [as_array(t) for t in leaves((tuple(args), dict(kwargs))) if isinstance(t, torch.Tensor)]
    copies = deepcopy((tuple(args), dict(kwargs)))  # the module may write to them
    expected = [t for t in leaves(module(*copies[0], **copies[1])) if isinstance(t, torch.Tensor)]
    outputs = model(*arrays)
    worst = 0.0
    for name, tensor in zip([t.name for t in model.outputs], expected, strict=False):
        right = as_array(tensor).astype(np.float64)
        gap = np.abs(np.asarray(outputs[name]).astype(np.float64) - right)
        worst = max(worst, float(gap.max(initial=0) / max(np.abs(right).max(initial=0), 1e-6)))
    return worst


def as_array(tensor: Any) -> Any:
    """Return a tensor as an array; short floats that NumPy does not have by their bits."""
    on_cpu = tensor.detach().cpu().contiguous()
    if str(on_cpu.dtype) != "torch.bfloat16":
        return on_cpu.numpy()
    return on_cpu.view(import_module("torch").uint16).numpy().view(import_module("ml_dtypes").bfloat16)
