"""Series, text by other means than attention, and states that run along a sequence."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from benchmarks.pytorch.network import Network
from benchmarks.pytorch.written.given import fixed, mlp


class NBeats(nn.Module):
    def __init__(self, past: int = 168, future: int = 24) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([mlp(past, 256, 256, 256, past + future) for _ in range(6)])
        self.past = past

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        total = torch.zeros(x.shape[0], 24)
        for block in self.blocks:
            back, ahead = block(x.relu()).split([self.past, 24], -1)
            x, total = x - back, total + ahead
        return total


class Gated(nn.Module):
    """A gated residual network."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.a, self.b, self.gate, self.norm = (
            nn.Linear(width, width),
            nn.Linear(width, width),
            nn.Linear(width, 2 * width),
            nn.LayerNorm(width),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x + functional.glu(self.gate(self.b(functional.elu(self.a(x))))))


class Tft(nn.Module):
    """A fusion transformer: choice among 8 variables, an LSTM, attention."""

    def __init__(self, width: int = 64, variables: int = 8) -> None:
        super().__init__()
        self.enter = nn.ModuleList([nn.Linear(1, width) for _ in range(variables)])
        self.each = nn.ModuleList([Gated(width) for _ in range(variables)])
        self.choose = nn.Linear(variables * width, variables)
        self.lstm, self.after = nn.LSTM(width, width, batch_first=True), Gated(width)
        self.attention, self.last = nn.MultiheadAttention(width, 4, batch_first=True), Gated(width)
        self.head = nn.Linear(width, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        each = [layer(x[..., i : i + 1]) for i, layer in enumerate(self.enter)]
        weights = self.choose(torch.cat(each, -1)).softmax(-1)[..., None, :]
        y = (torch.stack([g(e) for g, e in zip(self.each, each, strict=True)], -1) * weights).sum(-1)
        y = self.after(self.lstm(y)[0])
        mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        y = self.last(y + self.attention(y, y, y, attn_mask=mask)[0])
        return self.head(y[:, -24:])


class Rows(nn.Module):
    """A stack of LSTMs or GRUs in both directions."""

    def __init__(self, kind: type[nn.RNNBase], width: int, layers: int) -> None:
        super().__init__()
        self.rnn = kind(width, width, layers, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * width, 20)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.rnn(x)[0])


class Crnn(nn.Module):
    """Convolutions, two LSTMs in both directions, probabilities for each column."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for a, b, pool in (
            (1, 64, (2, 2)),
            (64, 128, (2, 2)),
            (128, 256, None),
            (256, 256, (2, 1)),
            (256, 512, (2, 1)),
        ):
            layers += [nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU()]
            layers += [nn.MaxPool2d(pool)] if pool else []
        self.layers = nn.Sequential(*layers, nn.Conv2d(512, 512, 2), nn.ReLU())
        self.rnn = nn.LSTM(512, 256, 2, bidirectional=True)
        self.head = nn.Linear(512, 37)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.layers(x).squeeze(2).permute(2, 0, 1)
        return self.head(self.rnn(y)[0]).log_softmax(-1)


class Mamba(nn.Module):
    """A selective scan of chunks: sums of logarithms in place of steps."""

    def __init__(self, width: int = 256, states: int = 16, chunk: int = 16) -> None:
        super().__init__()
        self.states, self.chunk = states, chunk
        self.enter, self.conv = nn.Linear(width, 2 * width), nn.Conv1d(width, width, 4, padding=3, groups=width)
        self.select, self.step = nn.Linear(width, 16 + 2 * states), nn.Linear(16, width)
        self.decay, self.skip = nn.Parameter(torch.rand(width, states)), nn.Parameter(torch.randn(width))
        self.leave, self.norm = nn.Linear(width, width), nn.LayerNorm(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y, gate = self.enter(self.norm(x)).chunk(2, -1)
        y = functional.silu(self.conv(y.transpose(1, 2))[..., : x.shape[1]]).transpose(1, 2)
        step, b, c = self.select(y).split([16, self.states, self.states], -1)
        step = functional.softplus(self.step(step))
        log = -(step[..., None] * self.decay)  # [batch, time, width, states]
        given = (step * y)[..., None] * b[:, :, None]
        chunks = [t.unflatten(1, (-1, self.chunk)) for t in (log, given)]
        total = chunks[0].cumsum(2)
        inside = total.exp() * (chunks[1] * (-total).exp()).cumsum(2)
        state, out = torch.zeros_like(inside[:, 0, 0]), list[torch.Tensor]()
        for i in range(inside.shape[1]):
            all_of = inside[:, i] + total[:, i].exp() * state[:, None]
            state = all_of[:, -1]
            out.append(all_of)
        y = (torch.cat(out, 1) * c[:, :, None]).sum(-1) + y * self.skip
        return x + self.leave(y * functional.silu(gate))


class Rwkv(nn.Module):
    """Mixing over time by sums that decay, one step after another; then channels."""

    def __init__(self, width: int = 128) -> None:
        super().__init__()
        self.k, self.v, self.r, self.o = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.mix, self.decay, self.bonus = (nn.Parameter(torch.rand(width)) for _ in range(3))
        self.norm, self.other = nn.LayerNorm(width), nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(x)
        before = functional.pad(y, (0, 0, 1, -1))
        y = y * self.mix + before * (1 - self.mix)
        k, v, r = self.k(y), self.v(y), self.r(y).sigmoid()
        top, bottom, out = torch.zeros_like(k[:, 0]), torch.zeros_like(k[:, 0]), list[torch.Tensor]()
        for t in range(x.shape[1]):
            now = (k[:, t] + self.bonus).exp()
            out.append((top + now * v[:, t]) / (bottom + now + 1e-6))
            part, keep = k[:, t].exp(), (-self.decay.exp()).exp()
            top, bottom = top * keep + part * v[:, t], bottom * keep + part
        x = x + self.o(r * torch.stack(out, 1))
        return x + self.down(self.up(self.other(x)).relu().square())


class Linear(nn.Module):
    """Linear attention, elu + 1."""

    def __init__(self, width: int = 256, heads: int = 8) -> None:
        super().__init__()
        self.heads, self.norm = heads, nn.LayerNorm(width)
        self.qkv, self.o = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width)
        self.up, self.down, self.other = nn.Linear(width, 2 * width), nn.Linear(2 * width, width), nn.LayerNorm(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(self.norm(x)).unflatten(-1, (3, self.heads, -1)).unbind(2)
        q, k = functional.elu(q) + 1, functional.elu(k) + 1
        sums = torch.einsum("blhd,blhe->bhde", k, v)
        scale = 1 / (torch.einsum("blhd,bhd->blh", q, k.sum(1)) + 1e-6)
        x = x + self.o((torch.einsum("blhd,bhde->blhe", q, sums) * scale[..., None]).flatten(2))
        return x + self.down(functional.relu(self.up(self.other(x))))


class Retention(nn.Module):
    """Retention in parallel: scores by a decay, a norm of each head."""

    def __init__(self, width: int = 256, heads: int = 4) -> None:
        super().__init__()
        self.heads, self.norm, self.heads_norm = heads, nn.LayerNorm(width), nn.GroupNorm(heads, width)
        self.q, self.k, self.v, self.g, self.o = (nn.Linear(width, width, bias=False) for _ in range(5))
        self.up, self.down, self.other = nn.Linear(width, 2 * width), nn.Linear(2 * width, width), nn.LayerNorm(width)
        gap = torch.arange(128)[:, None] - torch.arange(128)
        rates = 1 - 2.0 ** -(5 + torch.arange(heads))
        self.register_buffer("decay", torch.where(gap >= 0, rates[:, None, None] ** gap.clamp(min=0), 0.0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(x)
        q, k, v = (f(y).unflatten(-1, (self.heads, -1)).transpose(1, 2) for f in (self.q, self.k, self.v))
        y = ((q @ k.transpose(-1, -2)) * self.decay) @ v
        y = self.heads_norm(y.transpose(1, 2).flatten(0, 1).flatten(1)).view_as(x)
        x = x + self.o(functional.silu(self.g(x)) * y)
        return x + self.down(functional.gelu(self.up(self.other(x))))


class DLinear(nn.Module):
    """DLinear: a moving mean and the rest, a linear layer for each."""

    def __init__(self, past: int = 336, future: int = 96) -> None:
        super().__init__()
        self.trend, self.rest = nn.Linear(past, future), nn.Linear(past, future)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        padded = functional.pad(x.transpose(1, 2), (12, 12), mode="replicate")
        trend = functional.avg_pool1d(padded, 25, 1)
        return (self.trend(trend) + self.rest(x.transpose(1, 2) - trend)).transpose(1, 2)


class TextCnn(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(5000, 128)
        self.windows = nn.ModuleList([nn.Conv1d(128, 100, n) for n in (3, 4, 5)])
        self.head = nn.Linear(300, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.table(x).transpose(1, 2)
        return self.head(torch.cat([w(y).relu().amax(-1) for w in self.windows], 1))


def networks() -> list[Network]:
    def series(*shape: int):
        return lambda g: {"x": torch.randn(*shape, generator=g)}

    def stack(layer: type[nn.Module], count: int):
        return lambda: nn.Sequential(*(layer() for _ in range(count)))

    def words(g: torch.Generator):
        return {"x": torch.randint(0, 5000, (1, 128), generator=g)}

    def named(make):
        return lambda g: {"input": make(g)["x"]}

    return [
        fixed("n_beats", NBeats, series(32, 168)),
        fixed("tft", Tft, series(1, 192, 8)),
        fixed("bilstm", lambda: Rows(nn.LSTM, 128, 2), series(1, 64, 128)),
        fixed("bigru_batch", lambda: Rows(nn.GRU, 128, 2), series(16, 50, 128)),
        fixed("crnn", Crnn, series(1, 1, 32, 128)),
        fixed("mamba", stack(Mamba, 2), named(series(1, 128, 256))),
        fixed("rwkv", stack(Rwkv, 2), named(series(1, 64, 128))),
        fixed("linear_attention", stack(Linear, 4), named(series(1, 512, 256))),
        fixed("retnet", stack(Retention, 4), named(series(1, 128, 256))),
        fixed("dlinear", DLinear, series(8, 336, 21)),
        fixed("text_cnn", TextCnn, words),
    ]
