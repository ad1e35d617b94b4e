"""A network that is exported with one size, and layers that several share."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import torch
from torch import nn

from benchmarks.pytorch.network import Inputs, Network


def fixed(name: str, build: Callable[[], nn.Module], make: Callable[[torch.Generator], Inputs]) -> Network:
    """A network whose inputs `make` draws."""
    return Network(name, build, lambda *_: make(torch.Generator().manual_seed(1)), [()])


def mlp(*widths: int) -> nn.Sequential:
    """Linear layers with ReLUs between them."""
    layers: list[nn.Module] = []
    for a, b in pairwise(widths):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def unit(a: int, b: int, size: int = 1, stride: int = 1, groups: int = 1, act: type[nn.Module] = nn.SiLU) -> nn.Module:
    """Convolution, norm and function."""
    return nn.Sequential(nn.Conv2d(a, b, size, stride, size // 2, groups=groups, bias=False), nn.BatchNorm2d(b), act())
