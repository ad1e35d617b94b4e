"""Pictures: detection, segmentation, larger pictures, depth, flow, poses, matching."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional
from torchvision.models import resnet18
from torchvision.ops import nms

from benchmarks.pytorch.network import Inputs, Network
from benchmarks.pytorch.vision import detector, pictures, segmenter
from benchmarks.pytorch.written.given import fixed, unit


class Csp(nn.Module):
    def __init__(self, a: int, b: int, shortcut: bool = True) -> None:
        super().__init__()
        self.left, self.right, self.out = unit(a, b // 2), unit(a, b // 2), unit(b, b)
        self.inner, self.shortcut = nn.Sequential(unit(b // 2, b // 2), unit(b // 2, b // 2, 3)), shortcut

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.left(x)
        return self.out(torch.cat((y + self.inner(y) if self.shortcut else self.inner(y), self.right(x)), 1))


class Yolox(nn.Module):
    """A focus of pixels, three levels, heads apart for classes and boxes, and the best boxes by NMS."""

    def __init__(self, width: int = 16, classes: int = 20) -> None:
        super().__init__()
        w = width
        self.stem, self.two = unit(12, w, 3), nn.Sequential(unit(w, 2 * w, 3, 2), Csp(2 * w, 2 * w))
        self.three = nn.Sequential(unit(2 * w, 4 * w, 3, 2), Csp(4 * w, 4 * w))
        self.four = nn.Sequential(unit(4 * w, 8 * w, 3, 2), Csp(8 * w, 8 * w))
        self.five = nn.Sequential(unit(8 * w, 16 * w, 3, 2), Csp(16 * w, 16 * w))
        self.a, self.b = Csp(24 * w, 8 * w, False), Csp(12 * w, 4 * w, False)
        self.levels = nn.ModuleList([unit(n * w, 4 * w) for n in (4, 8, 16)])
        self.classes = nn.ModuleList(
            [nn.Sequential(unit(4 * w, 4 * w, 3), nn.Conv2d(4 * w, classes, 1)) for _ in range(3)]
        )
        self.boxes = nn.ModuleList([nn.Sequential(unit(4 * w, 4 * w, 3), nn.Conv2d(4 * w, 5, 1)) for _ in range(3)])

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        x = torch.cat((x[..., ::2, ::2], x[..., 1::2, ::2], x[..., ::2, 1::2], x[..., 1::2, 1::2]), 1)
        three = self.three(self.two(self.stem(x)))
        four = self.four(three)
        five = self.five(four)
        four = self.a(torch.cat((functional.interpolate(five, scale_factor=2), four), 1))
        three = self.b(torch.cat((functional.interpolate(four, scale_factor=2), three), 1))
        found = list[torch.Tensor]()
        for i, y in enumerate((three, four, five)):
            y = self.levels[i](y)
            boxes, scores = self.boxes[i](y), self.classes[i](y)
            h, w = y.shape[-2:]
            grid = torch.stack(torch.meshgrid(torch.arange(w), torch.arange(h), indexing="xy")).float()
            step = 8 << i
            place, size = (boxes[:, :2] + grid) * step, boxes[:, 2:4].clamp(max=3).exp() * step
            found.append(torch.cat((place, size, boxes[:, 4:].sigmoid(), scores.sigmoid()), 1).flatten(2))
        all_of = torch.cat(found, 2)[0].T
        scores, _ = (all_of[:, 5:] * all_of[:, 4:5]).max(1)
        best = scores.topk(300)
        boxes = all_of[best.indices, :4]
        corners = torch.cat((boxes[:, :2] - boxes[:, 2:] / 2, boxes[:, :2] + boxes[:, 2:] / 2), 1)
        keep = nms(corners, best.values, 0.5)
        return corners[keep], best.values[keep]


class Detr(nn.Module):
    """A residual network, an encoder over its pixels, 50 queries of a decoder."""

    def __init__(self, width: int = 128) -> None:
        super().__init__()
        self.body = nn.Sequential(*list(resnet18().children())[:-2])
        self.enter, self.queries = nn.Conv2d(512, width, 1), nn.Parameter(torch.rand(50, width))
        self.rows, self.columns = nn.Parameter(torch.rand(8, width // 2)), nn.Parameter(torch.rand(8, width // 2))
        self.transformer = nn.Transformer(width, 8, 3, 3, 512, batch_first=True)
        self.classes, self.boxes = nn.Linear(width, 92), nn.Linear(width, 4)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = self.enter(self.body(x))
        h, w = y.shape[-2:]
        place = torch.cat((self.columns[:w].expand(h, -1, -1), self.rows[:h, None].expand(-1, w, -1)), -1).flatten(0, 1)
        y = self.transformer(place + 0.1 * y.flatten(2).transpose(1, 2), self.queries[None])
        return self.classes(y), self.boxes(y).sigmoid()


class BiSeNet(nn.Module):
    """Details at an eighth, context by a short network, both weighed by means."""

    def __init__(self) -> None:
        super().__init__()
        self.details = nn.Sequential(unit(3, 32, 7, 2), unit(32, 32, 3, 2), unit(32, 64, 3, 2), unit(64, 64))
        self.context = nn.Sequential(
            unit(3, 16, 3, 2), unit(16, 32, 3, 2), unit(32, 64, 3, 2), unit(64, 128, 3, 2), unit(128, 128, 3, 2)
        )
        self.weigh, self.merge, self.head = nn.Conv2d(128, 128, 1), unit(192, 64), nn.Conv2d(64, 19, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.context(x)
        y = y * self.weigh(y.mean((2, 3), keepdim=True)).sigmoid()
        y = functional.interpolate(y, scale_factor=4, mode="bilinear", align_corners=True)
        y = self.head(self.merge(torch.cat((self.details(x), y), 1)))
        return functional.interpolate(y, scale_factor=8, mode="bilinear", align_corners=True)


class UNetPlus(nn.Module):
    """UNet++: nested paths between four levels."""

    def __init__(self, widths: tuple[int, ...] = (16, 32, 64, 128)) -> None:
        super().__init__()
        self.cells = nn.ModuleDict()
        for i, w in enumerate(widths):
            self.cells[f"{i}_0"] = nn.Sequential(
                unit(widths[i - 1] if i else 3, w, 3, act=nn.ReLU), unit(w, w, 3, act=nn.ReLU)
            )
            for j in range(1, len(widths) - i):
                self.cells[f"{i}_{j}"] = unit(w * j + widths[i + 1], w, 3, act=nn.ReLU)
        self.head = nn.Conv2d(widths[0], 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = list[list[torch.Tensor]]()
        for i in range(4):
            rows.append([self.cells[f"{i}_0"](x if i == 0 else functional.max_pool2d(rows[i - 1][0], 2))])
            for j in range(1, i + 1):
                above = rows[i - j]
                up = functional.interpolate(rows[i - j + 1][-1], scale_factor=2, mode="bilinear", align_corners=False)
                above.append(self.cells[f"{i - j}_{j}"](torch.cat((*above, up), 1)))
        return self.head(rows[0][-1])


class Edsr(nn.Module):
    """Residual blocks, with or without weights of channels (RCAN), and pixels from channels."""

    def __init__(self, width: int = 32, blocks: int = 6, weigh: bool = False) -> None:
        super().__init__()
        self.enter, self.leave = nn.Conv2d(3, width, 3, padding=1), nn.Conv2d(width, width, 3, padding=1)
        self.blocks = nn.ModuleList(
            [
                nn.Sequential(nn.Conv2d(width, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, width, 3, padding=1))
                for _ in range(blocks)
            ]
        )
        self.weigh = nn.ModuleList(
            [
                nn.Sequential(nn.Conv2d(width, 4, 1), nn.ReLU(), nn.Conv2d(4, width, 1), nn.Sigmoid())
                for _ in range(blocks if weigh else 0)
            ]
        )
        self.up = nn.Sequential(
            nn.Conv2d(width, 4 * width, 3, padding=1), nn.PixelShuffle(2), nn.Conv2d(width, 3, 3, padding=1)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first = y = self.enter(x)
        for i, block in enumerate(self.blocks):
            z = block(y)
            y = y + (z * self.weigh[i](z.mean((2, 3), keepdim=True)) if self.weigh else z)
        return self.up(first + self.leave(y))


def espcn() -> nn.Module:
    layers = [nn.Conv2d(1, 64, 5, padding=2), nn.Tanh(), nn.Conv2d(64, 32, 3, padding=1), nn.Tanh()]
    return nn.Sequential(*layers, nn.Conv2d(32, 9, 3, padding=1), nn.PixelShuffle(3))


class Depth(nn.Module):
    """Monodepth: a residual network, and up again with reflected edges; disparities of two scales."""

    def __init__(self) -> None:
        super().__init__()
        self.body = resnet18()
        wide, beside = (128, 64, 32, 16), (256, 128, 64, 0)

        def window(a: int, b: int) -> nn.Module:
            return nn.Sequential(nn.ReflectionPad2d(1), nn.Conv2d(a, b, 3), nn.ELU())

        before = (512, *wide)
        self.one = nn.ModuleList([window(before[i], wide[i]) for i in range(4)])
        self.two = nn.ModuleList([window(wide[i] + beside[i], wide[i]) for i in range(4)])
        self.heads = nn.ModuleList([nn.Conv2d(wide[i], 1, 3, padding=1, padding_mode="reflect") for i in (2, 3)])

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        b = self.body
        y = b.maxpool(b.relu(b.bn1(b.conv1(x))))
        kept = [y := b.layer1(y), y := b.layer2(y), y := b.layer3(y)]
        y = b.layer4(y)
        found = list[torch.Tensor]()
        for i in range(4):
            y = functional.interpolate(self.one[i](y), scale_factor=2)
            y = self.two[i](torch.cat((y, kept.pop()), 1) if kept else y)
            if i >= 2:
                found.append(self.heads[i - 2](y).sigmoid())
        return found[0], found[1]


class Flow(nn.Module):
    """RAFT: a volume of correlations, looked up bilinearly around the flow, and a convolutional GRU, four times."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.features = nn.Sequential(
            unit(3, 32, 7, 2, act=nn.ReLU), unit(32, 48, 3, 2, act=nn.ReLU), unit(48, width, 3, 2, act=nn.ReLU)
        )
        self.context = nn.Sequential(
            unit(3, 32, 7, 2, act=nn.ReLU), unit(32, 48, 3, 2, act=nn.ReLU), nn.Conv2d(48, 2 * width, 3, 2, 1)
        )
        self.motion = nn.Conv2d(2 * 49 + 2, width - 2, 3, padding=1)
        self.gates, self.new = nn.Conv2d(3 * width, 2 * width, 3, padding=1), nn.Conv2d(3 * width, width, 3, padding=1)
        self.head = nn.Sequential(nn.Conv2d(width, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, 2, 3, padding=1))

    def forward(self, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        a, b = self.features(first), self.features(second)
        h, w = a.shape[-2:]
        volume = (a.flatten(2).transpose(1, 2) @ b.flatten(2) / 8.0).view(h * w, 1, h, w)
        levels = [volume, functional.avg_pool2d(volume, 2)]
        state, inputs = self.context(first).chunk(2, 1)
        state, inputs = state.tanh(), inputs.relu()
        grid = torch.stack(torch.meshgrid(torch.arange(w), torch.arange(h), indexing="xy")).float()[None]
        steps = torch.arange(-3, 4).float()
        around = torch.stack(torch.meshgrid(steps, steps, indexing="xy"), -1)
        flow = torch.zeros_like(grid)
        for _ in range(4):
            centre, seen = (grid + flow).permute(0, 2, 3, 1).reshape(h * w, 1, 1, 2), list[torch.Tensor]()
            for i, level in enumerate(levels):
                size = torch.tensor([level.shape[-1] - 1.0, level.shape[-2] - 1.0])
                place = (centre / 2**i + around) * 2 / size - 1
                seen.append(
                    functional.grid_sample(level, place, align_corners=True).view(1, h, w, 49).permute(0, 3, 1, 2)
                )
            motion = torch.cat((self.motion(torch.cat((*seen, flow), 1)).relu(), flow, inputs), 1)
            update, reset = self.gates(torch.cat((state, motion), 1)).sigmoid().chunk(2, 1)
            new = self.new(torch.cat((reset * state, motion), 1)).tanh()
            state = (1 - update) * state + update * new
            flow = flow + self.head(state)
        return functional.interpolate(flow * 8, scale_factor=8, mode="bilinear", align_corners=True)


class Pose(nn.Module):
    """A residual network, three transposed convolutions, maps of 17 joints and their places by a soft argmax."""

    def __init__(self) -> None:
        super().__init__()
        self.body, layers, width = nn.Sequential(*list(resnet18().children())[:-2]), list[nn.Module](), 512
        for _ in range(3):
            layers += [nn.ConvTranspose2d(width, 64, 4, 2, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
            width = 64
        self.up = nn.Sequential(*layers, nn.Conv2d(64, 17, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        maps = self.up(self.body(x))
        parts = maps.flatten(2).softmax(-1).view_as(maps)
        h, w = maps.shape[-2:]
        return torch.stack(((parts.sum(2) * torch.arange(w)).sum(-1), (parts.sum(3) * torch.arange(h)).sum(-1)), -1)


class Match(nn.Module):
    """LoFTR: features of two pictures, linear attention within and across, products of all places."""

    def __init__(self, width: int = 128) -> None:
        super().__init__()
        self.features = nn.Sequential(unit(1, 32, 7, 2), unit(32, 64, 3, 2), unit(64, width, 3, 2))
        self.q, self.k, self.v, self.o = (
            nn.ModuleList([nn.Linear(width, width, bias=False) for _ in range(4)]) for _ in range(4)
        )
        self.inner = nn.ModuleList(
            [
                nn.Sequential(
                    nn.Linear(2 * width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width), nn.LayerNorm(width)
                )
                for _ in range(4)
            ]
        )

    def attend(self, i: int, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        q, k = (
            functional.elu(self.q[i](x)).unflatten(-1, (8, -1)) + 1,
            functional.elu(self.k[i](y)).unflatten(-1, (8, -1)) + 1,
        )
        sums = torch.einsum("nshd,nshv->nhdv", k, self.v[i](y).unflatten(-1, (8, -1)))
        scale = 1 / (torch.einsum("nlhd,nhd->nlh", q, k.sum(1)) + 1e-6)
        mixed = torch.einsum("nlhd,nhdv,nlh->nlhv", q, sums, scale).flatten(2)
        return x + self.inner[i](torch.cat((x, self.o[i](mixed)), -1))

    def forward(self, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        a, b = (self.features(x).flatten(2).transpose(1, 2) for x in (first, second))
        for i in (0, 2):
            a, b = self.attend(i, a, a), self.attend(i, b, b)
            a, b = self.attend(i + 1, a, b), self.attend(i + 1, b, a)
        scores = a @ b.transpose(1, 2) / 128
        return scores.softmax(1) * scores.softmax(2)


def networks() -> list[Network]:
    def picture(name: str, *shape: int):
        return lambda _: {name: pictures(*shape)}

    def pair(channels: int):
        def make(_: torch.Generator) -> Inputs:
            return {"first": pictures(1, channels, 128, 160), "second": pictures(1, channels, 128, 160).roll(3, -1)}

        return make

    return [
        fixed("yolox", Yolox, picture("x", 1, 3, 320, 320)),
        fixed("detr", Detr, picture("x", 1, 3, 224, 224)),
        fixed("bisenet", BiSeNet, picture("x", 1, 3, 256, 512)),
        fixed("unet_plus", UNetPlus, picture("x", 1, 3, 128, 128)),
        fixed("espcn", espcn, picture("input", 1, 1, 120, 160)),
        fixed("edsr", Edsr, picture("x", 1, 3, 96, 96)),
        fixed("rcan", lambda: Edsr(weigh=True), picture("x", 1, 3, 96, 96)),
        fixed("monodepth", Depth, picture("x", 1, 3, 128, 256)),
        fixed("raft", Flow, pair(3)),
        fixed("pose", Pose, picture("x", 1, 3, 256, 192)),
        fixed("loftr", Match, pair(1)),
        detector("ssdlite320_mobilenet_v3_large"),
        segmenter("fcn_resnet50"),
    ]
