"""Recommendation, and tables with columns of categories."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.pytorch.network import Inputs, Network
from benchmarks.pytorch.written.given import fixed, mlp

ROWS, WORDS = 128, 2000


class Dlrm(nn.Module):
    """Embeddings of 26 categories, their products in pairs."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.tables = nn.ModuleList([nn.Embedding(WORDS, width) for _ in range(26)])
        self.bottom, self.top = mlp(13, 128, width), mlp(351 + width, 256, 64, 1)
        pairs = torch.tril_indices(27, 27, -1)
        self.register_buffer("pairs", pairs[0] * 27 + pairs[1])

    def forward(self, categories: torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
        bottom = self.bottom(numbers)
        all_of = torch.stack([bottom, *(t(categories[:, i]) for i, t in enumerate(self.tables))], 1)
        products = (all_of @ all_of.transpose(1, 2)).flatten(1)[:, self.pairs]
        return torch.sigmoid(self.top(torch.cat((bottom, products), 1)))


class DeepFm(nn.Module):
    """One table for all categories; products in pairs by the square of the sum."""

    def __init__(self, fields: int = 39, width: int = 16) -> None:
        super().__init__()
        self.table, self.linear = nn.Embedding(fields * 1000, width), nn.Embedding(fields * 1000, 1)
        self.register_buffer("begin", torch.arange(fields) * 1000)
        self.deep = mlp(fields * width, 400, 400, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        index = x + self.begin
        found = self.table(index)
        pairs = (found.sum(1).square() - found.square().sum(1)).sum(1, keepdim=True) * 0.5
        return torch.sigmoid(self.linear(index).sum(1) + pairs + self.deep(found.flatten(1)))


class Din(nn.Module):
    """Attention of one item to 50 earlier ones by a small network, with a mask."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.table = nn.Embedding(WORDS, width)
        self.attend, self.top = mlp(4 * width, 80, 40, 1), mlp(2 * width, 200, 80, 1)

    def forward(self, item: torch.Tensor, past: torch.Tensor) -> torch.Tensor:
        one, many = self.table(item), self.table(past)
        each = one[:, None].expand_as(many)
        scores = self.attend(torch.cat((each, many, each - many, each * many), -1))
        scores = scores.masked_fill((past == 0)[..., None], -1e9).softmax(1)
        return torch.sigmoid(self.top(torch.cat((one, (scores * many).sum(1)), -1)))


class TwoTowers(nn.Module):
    """Means of embeddings on both sides, and the cosine of two vectors."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.bag = nn.EmbeddingBag(WORDS * 10, width, mode="mean")
        self.user, self.item = mlp(width, 256, 128), mlp(width, 256, 128)

    def forward(self, users: torch.Tensor, items: torch.Tensor) -> torch.Tensor:
        a, b = self.user(self.bag(users)), self.item(self.bag(items))
        return nn.functional.normalize(a, dim=-1) @ nn.functional.normalize(b, dim=-1).T


class Tabular(nn.Module):
    """Each number is a token; three layers over 21 tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.randn(20, 64)), nn.Parameter(torch.randn(20, 64))
        self.first = nn.Parameter(torch.randn(1, 1, 64))
        layer = nn.TransformerEncoderLayer(64, 8, 128, activation="gelu", batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
        self.head = nn.Linear(64, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        tokens = x[..., None] * self.weight + self.bias
        return self.head(self.layers(torch.cat((self.first.expand(x.shape[0], -1, -1), tokens), 1))[:, 0])


class Cross(nn.Module):
    """Deep and cross network of 39 columns."""

    def __init__(self, width: int = 256) -> None:
        super().__init__()
        self.cross = nn.ModuleList([nn.Linear(width, width) for _ in range(3)])
        self.table, self.deep, self.head = nn.Embedding(WORDS, 8), mlp(width, 256, 128), nn.Linear(width + 128, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first = self.table(x).flatten(1)
        y = first
        for layer in self.cross:
            y = first * layer(y) + y
        return torch.sigmoid(self.head(torch.cat((y, self.deep(first)), 1)))


def _words(generator: torch.Generator, *shape: int, most: int = WORDS) -> torch.Tensor:
    return torch.randint(1, most, shape, generator=generator)


def networks() -> list[Network]:
    def dlrm(g: torch.Generator) -> Inputs:
        return {"categories": _words(g, ROWS, 26), "numbers": torch.randn(ROWS, 13, generator=g)}

    return [
        fixed("dlrm", Dlrm, dlrm),
        fixed("deepfm", DeepFm, lambda g: {"x": _words(g, ROWS, 39, most=1000)}),
        fixed("din", Din, lambda g: {"item": _words(g, 64), "past": _words(g, 64, 50)}),
        fixed("two_towers", TwoTowers, lambda g: {"users": _words(g, 64, 20), "items": _words(g, 64, 20)}),
        fixed("ft_transformer", Tabular, lambda g: {"x": torch.randn(32, 20, generator=g)}),
        fixed("deep_cross", Cross, lambda g: {"x": _words(g, ROWS, 32)}),
    ]
