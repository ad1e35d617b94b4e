"""Pictures that are made: a decoder, a step of diffusion, styles."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from benchmarks.pytorch.network import Inputs, Network
from benchmarks.pytorch.vision import pictures
from benchmarks.pytorch.written.given import fixed, unit


class Block(nn.Module):
    """Two convolutions with group norms, a vector added between them, a shortcut."""

    def __init__(self, a: int, b: int, time: int = 0) -> None:
        super().__init__()
        self.one, self.two = nn.GroupNorm(8, a), nn.GroupNorm(8, b)
        self.c, self.d = nn.Conv2d(a, b, 3, padding=1), nn.Conv2d(b, b, 3, padding=1)
        self.beside = nn.Conv2d(a, b, 1) if a != b else nn.Identity()
        self.time = nn.Linear(time, b) if time else None

    def forward(self, x: torch.Tensor, time: torch.Tensor | None = None) -> torch.Tensor:
        y = self.c(functional.silu(self.one(x)))
        if self.time is not None:
            y = y + self.time(time)[..., None, None]
        return self.beside(x) + self.d(functional.silu(self.two(y)))


class Pixels(nn.Module):
    """Attention of pixels to each other, or to a text."""

    def __init__(self, width: int, text: int = 0, heads: int = 4) -> None:
        super().__init__()
        self.heads, self.norm, self.text = heads, nn.GroupNorm(8, width), text
        self.q, self.o = nn.Linear(width, width), nn.Linear(width, width)
        self.k, self.v = nn.Linear(text or width, width), nn.Linear(text or width, width)

    def forward(self, x: torch.Tensor, text: torch.Tensor | None = None) -> torch.Tensor:
        y = self.norm(x).flatten(2).transpose(1, 2)
        given = y if text is None else text
        q, k, v = (
            f(t).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for f, t in ((self.q, y), (self.k, given), (self.v, given))
        )
        y = functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        return x + self.o(y).transpose(1, 2).unflatten(2, x.shape[2:])


class Decoder(nn.Module):
    """A VAE's decoder: residual blocks with group norms, attention of pixels once."""

    def __init__(self) -> None:
        super().__init__()
        self.enter, self.first, self.attend = nn.Conv2d(4, 64, 3, padding=1), Block(64, 64), Pixels(64)
        self.second, self.third, self.fourth = Block(64, 64), Block(64, 32), Block(32, 32)
        self.norm, self.head = nn.GroupNorm(8, 32), nn.Conv2d(32, 3, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.attend(self.first(self.enter(x)))
        for block in (self.second, self.third):
            y = block(functional.interpolate(y, scale_factor=2))
        return self.head(functional.silu(self.norm(self.fourth(y))))


class Diffusion(nn.Module):
    """A U-Net of three levels with a time, cross-attention to 16 words, and hints added as in ControlNet."""

    def __init__(self, width: int = 64, text: int = 128) -> None:
        super().__init__()
        w = width
        self.time = nn.Sequential(nn.Linear(w, 4 * w), nn.SiLU(), nn.Linear(4 * w, 4 * w), nn.SiLU())
        self.enter, self.hint = (
            nn.Conv2d(4, w, 3, padding=1),
            nn.Sequential(unit(3, 16, 3, 2), unit(16, 32, 3, 2), nn.Conv2d(32, w, 3, 2, 1)),
        )
        self.a, self.b, self.c = Block(w, w, 4 * w), Block(w, 2 * w, 4 * w), Block(2 * w, 2 * w, 4 * w)
        self.down = nn.ModuleList([nn.Conv2d(w, w, 3, 2, 1), nn.Conv2d(2 * w, 2 * w, 3, 2, 1)])
        self.own, self.cross = Pixels(2 * w), nn.ModuleList([Pixels(2 * w, text), Pixels(2 * w, text)])
        self.d, self.e = Block(4 * w, 2 * w, 4 * w), Block(3 * w, w, 4 * w)
        self.norm, self.head = nn.GroupNorm(8, w), nn.Conv2d(w, 4, 3, padding=1)

    def forward(self, x: torch.Tensor, when: torch.Tensor, text: torch.Tensor, hint: torch.Tensor) -> torch.Tensor:
        angles = when[:, None] * torch.exp(-torch.arange(32) / 32 * 9.2)
        time = self.time(torch.cat((angles.sin(), angles.cos()), -1))
        one = self.a(self.enter(x) + self.hint(hint), time)
        two = self.cross[0](self.b(self.down[0](one), time), text)
        y = self.cross[1](self.own(self.c(self.down[1](two), time)), text)
        y = self.d(torch.cat((functional.interpolate(y, scale_factor=2), two), 1), time)
        y = self.e(torch.cat((functional.interpolate(y, scale_factor=2), one), 1), time)
        return self.head(functional.silu(self.norm(y)))


class Style(nn.Module):
    """Convolutions whose weights are scaled by a style and normed again, noise added, blurred after enlarging."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.mapping = nn.Sequential(*(m for _ in range(4) for m in (nn.Linear(64, 64), nn.LeakyReLU(0.2))))
        self.first = nn.Parameter(torch.randn(1, width, 8, 8))
        self.weights = nn.ParameterList([nn.Parameter(torch.randn(width, width, 3, 3)) for _ in range(4)])
        self.styles = nn.ModuleList([nn.Linear(64, width) for _ in range(4)])
        self.head = nn.Conv2d(width, 3, 1)
        blur = torch.tensor([1.0, 3.0, 3.0, 1.0])
        self.register_buffer("blur", (blur[:, None] * blur / 64).expand(width, 1, 4, 4).contiguous())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        style, y = self.mapping(x), self.first
        for i, (weight, layer) in enumerate(zip(self.weights, self.styles, strict=True)):
            if i:
                y = functional.interpolate(y, scale_factor=2, mode="bilinear")
                y = functional.conv2d(functional.pad(y, (2, 1, 2, 1)), self.blur, groups=y.shape[1])
            w = weight * (layer(style) + 1)[0][:, None, None]
            w = w * (w.square().sum((1, 2, 3), keepdim=True) + 1e-8).rsqrt()
            y = functional.leaky_relu(functional.conv2d(y, w, padding=1), 0.2)
        return self.head(y).tanh()


def networks() -> list[Network]:
    def noise(g: torch.Generator) -> Inputs:
        return {"x": torch.randn(1, 64, generator=g)}

    def diffusion(g: torch.Generator) -> Inputs:
        return {
            "x": torch.randn(1, 4, 32, 32, generator=g),
            "when": torch.tensor([350.0]),
            "text": torch.randn(1, 16, 128, generator=g),
            "hint": pictures(1, 3, 256, 256),
        }

    return [
        fixed("vae_decoder", Decoder, lambda _: {"x": pictures(1, 4, 32, 32)}),
        fixed("diffusion", Diffusion, diffusion),
        fixed("style", Style, noise),
    ]
