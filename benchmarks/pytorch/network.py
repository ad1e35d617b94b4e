"""A network with random weights, and the inputs that it is exported and compared with. Needs PyTorch."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.export import Dim
from torch.utils import _pytree as pytree

Inputs = dict[str, Any]  # arguments of `forward` by name
BATCH = {0: Dim("batch", min=1, max=16)}
SILENT = 1e-3  # weights below it in magnitude, all of a tensor: far below those that are drawn, of 1e-2 and more


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
        module, given = self.build().eval(), self.inputs(*self.sizes[0])
        draw_silent_weights(module)
        set_statistics(module, given)
        check_dependence(module, given)
        return module


def draw_silent_weights(module: nn.Module) -> None:
    """Draw the weights that are zero or nearly: they would hide whatever they are multiplied by from a comparison.

    Heads that start at zero, and scales of residual branches that start at 1e-6.
    """
    for name, weight in module.named_parameters():
        if not name.endswith("bias") and weight.numel() > 1 and weight.detach().abs().max() < SILENT:
            nn.init.normal_(weight, std=0.1)


def check_dependence(module: nn.Module, inputs: Inputs) -> None:
    """Raise ValueError if the results of a module are the same for another first argument."""
    name, first = next((n, x) for n, x in inputs.items() if isinstance(x, torch.Tensor))
    other = first.flip(-1) * 0.7 if first.is_floating_point() else (first - 1).abs()
    with torch.no_grad():
        results = [pytree.tree_leaves(copy.deepcopy(module)(**inputs | {name: x})) for x in (first, other)]
    if all(torch.equal(a, b) for a, b in zip(*results, strict=True) if isinstance(a, torch.Tensor)):
        raise ValueError(f"results depend on {name}, got equal ones for two")


def set_statistics(module: nn.Module, inputs: Inputs) -> None:
    """Set the running statistics of batch normalisation to those of an inference: no signal dies or explodes.

    Modules of a network's own, which freeze theirs, are known by the same names of their statistics.
    All channels of a layer get its mean variance: a channel that varies little in two small pictures would stretch
    roundings with it, and PyTorch's own f32 results would be a few percent off those in f64. Their means are moved by
    half of its root, at random: else the mean of what was normalised, as a classifier's head takes it, would be zero.
    """

    def measure(norm: Any, given: tuple[torch.Tensor]) -> None:
        rows = given[0].transpose(0, 1).flatten(1)
        if rows.shape[1] > 1:  # one number less its own mean would be zero, for these inputs only
            variance = rows.var(1, unbiased=False).mean()
            norm.running_mean.copy_(rows.mean(1) + torch.randn(len(rows)) * variance.sqrt() / 2)
            norm.running_var.copy_(variance)

    norms = [m for m in module.modules() if isinstance(getattr(m, "running_var", None), torch.Tensor)]
    hooks = [norm.register_forward_pre_hook(measure) for norm in norms]
    with torch.no_grad():
        if norms:
            module(**inputs)
    for hook in hooks:
        hook.remove()
