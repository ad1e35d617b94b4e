"""Graphs and clouds of points."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.pytorch.network import Inputs, Network
from benchmarks.pytorch.written.given import fixed, mlp

NODES, EDGES = 1000, 8000


class Gcn(nn.Module):
    """Messages along edges, added up at their ends."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(a, b) for a, b in ((64, 64), (64, 64), (64, 7))])

    def forward(self, x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        ends = torch.zeros(x.shape[0]).index_add(0, edges[1], torch.ones(edges.shape[1])) + 1
        scale = (ends.rsqrt()[edges[0]] * ends.rsqrt()[edges[1]])[:, None]
        for i, layer in enumerate(self.layers):
            y = layer(x)
            x = torch.zeros_like(y).index_add(0, edges[1], y[edges[0]] * scale) + y / ends[:, None]
            x = x.relu() if i < 2 else x
        return x


class Gat(nn.Module):
    """Attention along edges: a softmax over the edges that end in a node."""

    def __init__(self, heads: int = 4, width: int = 16) -> None:
        super().__init__()
        self.heads, self.project = heads, nn.Linear(64, heads * width)
        self.source, self.target = nn.Parameter(torch.randn(heads, width)), nn.Parameter(torch.randn(heads, width))
        self.head = nn.Linear(heads * width, 7)

    def forward(self, x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        y = self.project(x).unflatten(1, (self.heads, -1))
        a, b = (y * self.source).sum(-1), (y * self.target).sum(-1)
        scores = nn.functional.leaky_relu(a[edges[0]] + b[edges[1]], 0.2)
        index = edges[1][:, None].expand_as(scores)
        most = torch.full_like(a, -1e9).scatter_reduce(0, index, scores, "amax")
        parts = (scores - most[edges[1]]).exp()
        parts = parts / (torch.zeros_like(a).index_add(0, edges[1], parts)[edges[1]] + 1e-9)
        mixed = torch.zeros_like(y).index_add(0, edges[1], y[edges[0]] * parts[..., None])
        return self.head(nn.functional.elu(mixed.flatten(1)))


class PointNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            *(
                m
                for a, b in ((3, 64), (64, 64), (64, 128), (128, 512))
                for m in (nn.Conv1d(a, b, 1), nn.BatchNorm1d(b), nn.ReLU())
            )
        )
        self.head = mlp(512, 256, 40)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.layers(x).amax(2))


def near(points: torch.Tensor, centres: torch.Tensor, count: int) -> torch.Tensor:
    """Indices of the nearest points of each centre, [batch, centres, count]."""
    gaps = centres.square().sum(-1)[..., None] + points.square().sum(-1)[:, None] - 2 * centres @ points.transpose(1, 2)
    return gaps.topk(count, largest=False).indices


def taken(values: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """Rows of `values` [batch, points, channels] by `index` [batch, …]."""
    batch = torch.arange(values.shape[0]).view(-1, *[1] * (index.ndim - 1))
    return values[batch, index]


class PointNet2(nn.Module):
    """Two stages of the 32 nearest neighbours of each fourth point."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.third = mlp(3, 32, 32, 64), mlp(67, 64, 64, 128), mlp(131, 128, 256)
        self.head = mlp(256, 128, 40)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x
        for stage, layers in enumerate((self.first, self.second)):
            centres = x[:, ::4]
            index = near(x, centres, 32)
            part = taken(x, index) - centres[:, :, None]
            y = layers(part if stage == 0 else torch.cat((part, taken(y, index)), -1)).amax(2)
            x = centres
        return self.head(self.third(torch.cat((x, y), -1)).amax(1))


class DgCnn(nn.Module):
    """Edges to the 20 nearest neighbours in the space of features."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2 * a, b) for a, b in ((3, 64), (64, 64), (64, 128))])
        self.head = mlp(256, 128, 40)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept = list[torch.Tensor]()
        for layer in self.layers:
            others = taken(x, near(x, x, 20))
            own = x[:, :, None].expand_as(others)
            x = nn.functional.leaky_relu(layer(torch.cat((own, others - own), -1)), 0.2).amax(2)
            kept.append(x)
        return self.head(torch.cat(kept, -1).amax(1))


class PointTransformer(nn.Module):
    """Attention of each point to 16 neighbours, a weight for each channel."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.enter, self.q, self.k, self.v = (nn.Linear(n, width) for n in (3, width, width, width))
        self.place, self.weigh, self.head = mlp(3, width, width), mlp(width, width, width), nn.Linear(width, 13)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        index = near(x, x, 16)
        y = self.enter(x).relu()
        place = self.place(x[:, :, None] - taken(x, index))
        keys, values = taken(self.k(y), index), taken(self.v(y), index)
        weights = self.weigh(self.q(y)[:, :, None] - keys + place).softmax(2)
        return self.head(y + (weights * (values + place)).sum(2))


def networks() -> list[Network]:
    def graph(g: torch.Generator) -> Inputs:
        return {"x": torch.randn(NODES, 64, generator=g), "edges": torch.randint(0, NODES, (2, EDGES), generator=g)}

    def cloud(g: torch.Generator) -> Inputs:
        return {"x": torch.randn(1, 1024, 3, generator=g)}

    return [
        fixed("gcn", Gcn, graph),
        fixed("gat", Gat, graph),
        fixed("pointnet", PointNet, lambda g: {"x": torch.randn(1, 3, 1024, generator=g)}),
        fixed("pointnet2", PointNet2, cloud),
        fixed("dgcnn", DgCnn, cloud),
        fixed("point_transformer", PointTransformer, cloud),
    ]
