"""Networks with random weights as PT2E quantises them, with torchao's quantiser for x86: data and weights of 8 bits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x86

from benchmarks.pytorch.network import BATCH, Inputs, Network


class Residual(nn.Module):
    """Two convolutions beside their input."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(channels, channels, 3, padding=1), nn.BatchNorm2d(channels), nn.ReLU())
        self.second = nn.Sequential(nn.Conv2d(channels, channels, 3, padding=1), nn.BatchNorm2d(channels))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x + self.second(self.first(x)))


class Images(nn.Module):
    """Convolutions, pooling and a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 32, 3, 2, 1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2))
        self.body = nn.Sequential(Residual(32), nn.Conv2d(32, 64, 3, 2, 1), nn.ReLU(), Residual(64))
        self.head = nn.Linear(64, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(self.stem(x)).mean((2, 3)))


def perceptron() -> nn.Module:
    return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10))


@dataclass(frozen=True)
class Quantized(Network):
    """A network of quantised layers, whose scales come from four inferences."""

    def module(self) -> nn.Module:
        given = self.inputs(*self.sizes[0])
        quantizer = x86.X86InductorQuantizer()
        quantizer.set_global(x86.get_default_x86_inductor_quantization_config())
        program = torch.export.export(super().module(), (), given, dynamic_shapes=self.dynamic).module()
        prepared = prepare_pt2e(program, quantizer)
        for seed in range(4):
            prepared(**{name: value + 0.1 * seed for name, value in given.items()})
        return convert_pt2e(prepared)


def of(name: str, build: Callable[[], nn.Module], argument: str, *shape: int) -> Network:
    def inputs(batch: int) -> Inputs:
        return {argument: torch.randn(batch, *shape, generator=torch.Generator().manual_seed(batch))}

    return Quantized(name, build, inputs, [(4,), (3,)], {argument: BATCH})


def networks() -> list[Network]:
    """All of them."""
    return [of("quantised_images", Images, "x", 3, 64, 64), of("quantised_perceptron", perceptron, "input", 64)]
