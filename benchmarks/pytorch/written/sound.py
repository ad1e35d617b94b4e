"""Sound: recognition, pitch, noise, codecs and vocoders."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import nn
from torch.nn import functional

from benchmarks.pytorch.network import Network
from benchmarks.pytorch.written.given import fixed


class Conformer(nn.Module):
    """One block: half a network, attention, a convolution of 31, half a network."""

    def __init__(self, width: int = 144) -> None:
        super().__init__()

        def half() -> nn.Module:
            return nn.Sequential(
                nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.SiLU(), nn.Linear(4 * width, width)
            )

        self.first, self.last, self.norm, self.out = half(), half(), nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, 4, batch_first=True)
        self.enter, self.leave = nn.Conv1d(width, 2 * width, 1), nn.Conv1d(width, width, 1)
        self.window, self.middle = nn.Conv1d(width, width, 31, padding=15, groups=width), nn.BatchNorm1d(width)
        self.before = nn.LayerNorm(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + 0.5 * self.first(x)
        y = self.norm(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        y = functional.glu(self.enter(self.before(x).transpose(1, 2)), 1)
        x = x + self.leave(functional.silu(self.middle(self.window(y)))).transpose(1, 2)
        return self.out(x + 0.5 * self.last(x))


class Speech(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.enter = nn.Conv2d(1, 64, 3, 2), nn.Conv2d(64, 64, 3, 2), nn.Linear(64 * 19, 144)
        self.layers, self.head = nn.Sequential(*(Conformer() for _ in range(4))), nn.Linear(144, 128)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.b(self.a(x[:, None]).relu()).relu().transpose(1, 2).flatten(2)
        return self.head(self.layers(self.enter(y))).log_softmax(-1)


class Causal(nn.Module):
    """Two dilated convolutions of the past, and a shortcut."""

    def __init__(self, width: int, dilation: int) -> None:
        super().__init__()
        self.pad = 2 * dilation
        self.a, self.b = (nn.Conv1d(width, width, 3, dilation=dilation) for _ in range(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.a(functional.pad(x, (self.pad, 0))).relu()
        return (x + self.b(functional.pad(y, (self.pad, 0))).relu()).relu()


def tcn() -> nn.Module:
    return nn.Sequential(nn.Conv1d(40, 64, 1), *(Causal(64, 2**i) for i in range(7)), nn.Conv1d(64, 20, 1))


def crepe() -> nn.Module:
    """The small variant: windows of 512 and 64 along a wave of 1024."""
    widths, layers = (1, 128, 16, 16, 16, 32, 64), list[nn.Module]()
    for i, (a, b) in enumerate(pairwise(widths)):
        size, step, pad = (512, 4, (254, 254)) if i == 0 else (64, 1, (31, 32))
        layers += [
            nn.ConstantPad1d(pad, 0.0),
            nn.Conv1d(a, b, size, step),
            nn.ReLU(),
            nn.BatchNorm1d(b),
            nn.MaxPool1d(2),
        ]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(256, 360), nn.Sigmoid())


class Noise(nn.Module):
    """RNNoise: three GRUs and gains of 22 bands."""

    def __init__(self) -> None:
        super().__init__()
        self.enter, self.voice = nn.Linear(42, 24), nn.GRU(24, 24, batch_first=True)
        self.noise, self.gains = nn.GRU(90, 48, batch_first=True), nn.GRU(114, 96, batch_first=True)
        self.head, self.speech = nn.Linear(96, 22), nn.Linear(24, 1)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = self.enter(x).tanh()
        voice = self.voice(y)[0].relu()
        noise = self.noise(torch.cat((y, voice, x), -1))[0].relu()
        gains = self.gains(torch.cat((voice, noise, x), -1))[0].relu()
        return self.head(gains).sigmoid(), self.speech(voice).sigmoid()


class Demucs(nn.Module):
    """A wave down to a quarter four times, an LSTM, and up again."""

    def __init__(self) -> None:
        super().__init__()
        self.down, self.up, width, into = nn.ModuleList(), nn.ModuleList(), 32, 1
        for i in range(4):
            self.down.append(
                nn.Sequential(nn.Conv1d(into, width, 8, 4), nn.ReLU(), nn.Conv1d(width, 2 * width, 1), nn.GLU(1))
            )
            last = [nn.ReLU()] if i else []
            self.up.insert(
                0,
                nn.Sequential(nn.Conv1d(width, 2 * width, 1), nn.GLU(1), nn.ConvTranspose1d(width, into, 8, 4), *last),
            )
            into, width = width, 2 * width
        self.rnn = nn.LSTM(into, into, 1, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept = list[torch.Tensor]()
        for layer in self.down:
            x = layer(x)
            kept.append(x)
        x = self.rnn(x.transpose(1, 2))[0].transpose(1, 2)
        for layer in self.up:
            x = layer(x + kept.pop()[..., : x.shape[-1]])
        return x


class Residual(nn.Module):
    """ELU, a window of 3, ELU, 1."""

    def __init__(self, width: int, dilation: int = 1) -> None:
        super().__init__()
        self.a = nn.Conv1d(width, width // 2, 3, dilation=dilation, padding=dilation, padding_mode="reflect")
        self.b = nn.Conv1d(width // 2, width, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.b(functional.elu(self.a(functional.elu(x))))


class Codec(nn.Module):
    """EnCodec's encoder, four books of 256 vectors, and its decoder."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        layers, back = list[nn.Module]([nn.Conv1d(1, width, 7, padding=3)]), list[nn.Module]()
        for step in (2, 4, 5, 8):
            layers += [Residual(width), nn.ELU(), nn.Conv1d(width, 2 * width, 2 * step, step, padding=step // 2)]
            up = nn.ConvTranspose1d(2 * width, width, 2 * step, step, padding=(step + 1) // 2, output_padding=step % 2)
            back = [nn.ELU(), up, Residual(width), *back]
            width *= 2
        self.encoder = nn.Sequential(*layers, nn.ELU(), nn.Conv1d(width, 64, 7, padding=3))
        self.decoder = nn.Sequential(
            nn.Conv1d(64, width, 7, padding=3), *back, nn.ELU(), nn.Conv1d(16, 1, 7, padding=3)
        )
        self.books = nn.Parameter(torch.randn(4, 256, 64) * 0.05)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rest = self.encoder(x).transpose(1, 2)
        total = torch.zeros_like(rest)
        for book in self.books:
            gaps = rest.square().sum(-1, keepdim=True) - 2 * rest @ book.T + book.square().sum(-1)
            found = book[gaps.argmin(-1)]
            rest, total = rest - found, total + found
        return self.decoder(total.transpose(1, 2))


class Vocos(nn.Module):
    """ConvNeXt blocks over frames; magnitudes and phases at the end."""

    def __init__(self, width: int = 256) -> None:
        super().__init__()
        self.enter = nn.Conv1d(100, width, 7, padding=3)
        self.windows = nn.ModuleList([nn.Conv1d(width, width, 7, padding=3, groups=width) for _ in range(6)])
        self.inner = nn.ModuleList(
            [
                nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.GELU(), nn.Linear(3 * width, width))
                for _ in range(6)
            ]
        )
        self.head = nn.Linear(width, 514)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.enter(x)
        for window, inner in zip(self.windows, self.inner, strict=True):
            y = y + inner(window(y).transpose(1, 2)).transpose(1, 2)
        size, phase = self.head(y.transpose(1, 2)).chunk(2, -1)
        size = size.exp().clamp(max=100.0)
        return torch.cat((size * phase.cos(), size * phase.sin()), -1)


class WaveNet(nn.Module):
    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.enter = nn.Conv1d(1, width, 1)
        self.windows = nn.ModuleList([nn.Conv1d(width, 2 * width, 3, dilation=2**i, padding=2**i) for i in range(8)])
        self.outs = nn.ModuleList([nn.Conv1d(width, 2 * width, 1) for _ in range(8)])
        self.head = nn.Sequential(nn.ReLU(), nn.Conv1d(width, width, 1), nn.ReLU(), nn.Conv1d(width, 1, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y, total = self.enter(x), torch.zeros(1)
        for window, out in zip(self.windows, self.outs, strict=True):
            a, b = window(y).chunk(2, 1)
            rest, skip = out(a.tanh() * b.sigmoid()).chunk(2, 1)
            y, total = y + rest, total + skip
        return self.head(total)


def words() -> nn.Module:
    """Key words: depthwise windows over spectra of a second."""
    layers: list[nn.Module] = [nn.Conv2d(1, 64, (10, 4), (2, 2), (5, 1)), nn.BatchNorm2d(64), nn.ReLU()]
    for _ in range(4):
        layers += [nn.Conv2d(64, 64, 3, padding=1, groups=64), nn.BatchNorm2d(64), nn.ReLU()]
        layers += [nn.Conv2d(64, 64, 1), nn.BatchNorm2d(64), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 12))


def networks() -> list[Network]:
    def noise(name: str, *shape: int):
        return lambda g: {name: torch.randn(*shape, generator=g)}

    return [
        fixed("conformer", Speech, noise("x", 1, 400, 80)),
        fixed("tcn", tcn, noise("input", 1, 40, 500)),
        fixed("crepe", crepe, noise("input", 4, 1, 1024)),
        fixed("rnnoise", Noise, noise("x", 1, 100, 42)),
        fixed("demucs", Demucs, noise("x", 1, 1, 8532)),
        fixed("codec", Codec, noise("x", 1, 1, 9600)),
        fixed("vocos", Vocos, noise("x", 1, 100, 94)),
        fixed("wavenet", WaveNet, noise("x", 1, 1, 4000)),
        fixed("key_words", words, noise("input", 1, 1, 49, 10)),
    ]
