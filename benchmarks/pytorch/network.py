"""A network with random weights, and the inputs that it is exported and compared with. Needs PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.export import Dim

Inputs = dict[str, Any]  # arguments of `forward` by name
BATCH = {0: Dim("batch", min=1, max=16)}


@dataclass(frozen=True)
class Network:
    """A network. `inputs`: arguments for each of `sizes`; it is exported with the first, and run with all of them.

    `dynamic`: sizes that are left open, by argument, as `torch.export.export` takes them.
    """

    name: str
    build: Callable[[], nn.Module]
    inputs: Callable[..., Inputs]
    sizes: Sequence[tuple[int, ...]]
    dynamic: dict[str, Any] | None = None

    def module(self) -> nn.Module:
        """Return the module with random weights, and statistics that fit its first inputs."""
        torch.manual_seed(11)
        module = self.build().eval()
        set_statistics(module, self.inputs(*self.sizes[0]))
        return module


def set_statistics(module: nn.Module, inputs: Inputs) -> None:
    """Set the running statistics of batch normalisation to those of an inference: no signal dies or explodes.

    All channels of a layer get its mean variance: a channel that varies little in two small pictures would stretch
    roundings with it, and PyTorch's own f32 results would be a few percent off those in f64.
    """

    def measure(norm: Any, given: tuple[torch.Tensor]) -> None:
        rows = given[0].transpose(0, 1).flatten(1)
        norm.running_mean.copy_(rows.mean(1))
        norm.running_var.copy_(rows.var(1, unbiased=False).mean() if rows.shape[1] > 1 else 1.0)

    norms = [m for m in module.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
    hooks = [norm.register_forward_pre_hook(measure) for norm in norms]
    with torch.no_grad():
        if norms:
            module(**inputs)
    for hook in hooks:
        hook.remove()
