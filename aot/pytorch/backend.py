"""The backend `aot` of torch.compile: `torch.compile(module, backend="aot")` for inference.

Each graph is exported and compiled when it is called with sizes that it has not had; parameters are constants.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from aot.pytorch.exporting import as_array, compiled, torch_of
from aot.runtime.errors import UsageError
from aot.runtime.model import CompiledModel

Key = tuple[object, ...]


def aot_backend(graph: Any, example_inputs: Sequence[Any]) -> Callable[..., Any]:
    """Return a function that runs a graph compiled. UsageError if gradients are wanted."""
    torch = torch_of("torch.compile")
    fixed = {i: t for i, t in enumerate(example_inputs) if _is_fixed(torch, t)}
    models: dict[Key, tuple[CompiledModel, list[int]]] = {}

    def run(*inputs: Any) -> Any:
        if torch.is_grad_enabled() and any(getattr(t, "requires_grad", False) for t in inputs):
            raise UsageError("torch.compile: backend aot is for inference: run it under torch.no_grad()")
        key = tuple(_shape_of(torch, v) for i, v in enumerate(inputs) if i not in fixed)
        if key not in models:
            models[key] = _compile(torch, graph, inputs, fixed)
        model, positions = models[key]
        outputs = model(*(as_array(inputs[i]) for i in positions))
        return tuple(_tensor(torch, outputs[t.name]) for t in model.outputs)

    return run


def _is_fixed(torch: Any, value: Any) -> bool:
    """True for parameters, and for buffers that TorchDynamo marks so."""
    return isinstance(value, torch.nn.Parameter) or hasattr(value, "_dynamo_static_input_type")


def _shape_of(torch: Any, value: Any) -> object:
    return (tuple(value.shape), value.dtype) if isinstance(value, torch.Tensor) else value


def _compile(torch: Any, graph: Any, inputs: Sequence[Any], fixed: dict[int, Any]) -> tuple[CompiledModel, list[int]]:
    """Return the compiled graph, and which of the inputs it takes."""
    positions = [i for i, v in enumerate(inputs) if i not in fixed and isinstance(v, torch.Tensor)]

    class Bound(torch.nn.Module):  # pyrefly: ignore[unknown-base-class]  PyTorch need not be installed
        """The graph with parameters and numbers in their places."""

        def __init__(self) -> None:
            torch.nn.Module.__init__(self)
            self.graph = graph
            for i in fixed:
                self.register_buffer(f"fixed{i}", inputs[i].detach())

        def forward(self, *tensors: Any) -> Any:
            values = list(inputs)
            for i in fixed:
                values[i] = getattr(self, f"fixed{i}")
            for i, value in zip(positions, tensors, strict=True):
                values[i] = value
            return self.graph(*values)

    with torch.no_grad():
        program = torch.export.export(Bound().eval(), tuple(inputs[i] for i in positions))
    return compiled(program, None, None, {})[0], positions


def _tensor(torch: Any, value: Any) -> Any:
    """Return an output as a tensor; bf16 comes as bits."""
    return torch.from_numpy(value.copy()) if value.dtype.kind != "V" else torch.from_numpy(value.view("u2").copy())
