"""Makes `programs.zip`: small exported modules, each with two inferences that PyTorch ran one after the other.

python -m tests.frontends.pt2.make_programs      needs torch 2.13; not run by the tests
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.ao.quantization.fx._decomposed  # registers quantized_decomposed
from torch import nn
from torch._higher_order_ops import scan, while_loop
from torch._higher_order_ops.map import map as map_rows
from torch._higher_order_ops.out_dtype import out_dtype
from torch.export import Dim, export
from torch.utils import _pytree as pytree

from tests.frontends.pt2.make_op_cases import DATE, Store, outputs, parts

FILE = Path(__file__).parent / "programs.zip"
torch.manual_seed(3)


class Of(nn.Module):
    """A module whose `forward` is a function of the module and its inputs, with buffers by name."""

    def __init__(self, function: Callable[..., Any], **buffers: torch.Tensor) -> None:
        super().__init__()
        self.function = function
        for name, value in buffers.items():
            self.register_buffer(name, value)

    def forward(self, x: torch.Tensor, y: torch.Tensor | None = None) -> Any:
        return self.function(self, x) if y is None else self.function(self, x, y)


class Nested(nn.Module):
    """Nested arguments and results, and a size as a result."""

    def forward(self, image: torch.Tensor, extra: dict[str, Any], *, scale: float = 2.0) -> dict[str, Any]:
        first, second = extra["p"].chunk(2, -1)
        return {"probs": image * scale + extra["q"][0], "list": [first, second], "n": image.shape[0]}


def row_in_place(self: Of, x: torch.Tensor) -> Any:
    y = x * 1
    y[0] = 5
    y[:, 1] += x[:, 0]
    z = y.view(-1)[2:5]
    z.mul_(2)
    y.t()[3].fill_(7)
    return y, z, y.unsqueeze(0)


def cache(self: Of, x: torch.Tensor) -> torch.Tensor:
    self.cache[:, 1:3] = x
    self.cache.index_copy_(0, self.place, x[:1].sum(1, keepdim=True).expand(1, 4).contiguous())
    self.place += 1
    return self.cache * 2


def written(self: Of, x: torch.Tensor) -> torch.Tensor:
    x[0] = 3
    return x.sum()


def quantized(self: Of, x: torch.Tensor) -> torch.Tensor:
    """A convolution as PT2E quantises it: data of 8 bits with one scale, weights with a scale for each channel."""
    ops = torch.ops.quantized_decomposed
    data = ops.quantize_per_tensor(x, 0.02, 3, -128, 127, torch.int8)
    data = ops.dequantize_per_tensor(data, 0.02, 3, -128, 127, torch.int8)
    w = ops.dequantize_per_channel(self.w, self.scales, self.zeros, 0, -127, 127, torch.int8)
    y = torch.nn.functional.conv2d(data, w, self.bias, padding=1).relu()
    y = ops.quantize_per_tensor(y, 0.05, -128, -128, 127, torch.int8)
    return ops.dequantize_per_tensor(y, 0.05, -128, -128, 127, torch.int8)


def quantized_by_range(self: Of, x: torch.Tensor) -> torch.Tensor:
    """A linear layer as PT2E quantises it dynamically."""
    ops = torch.ops.quantized_decomposed
    scale, zero = ops.choose_qparams(x, 0, 255, 2**-12, torch.uint8)
    data = ops.quantize_per_tensor(x, scale, zero, 0, 255, torch.uint8)
    data = ops.dequantize_per_tensor(data, scale, zero, 0, 255, torch.uint8)
    w = ops.dequantize_per_channel(self.w.reshape(6, 36), self.scales, self.zeros, 0, -127, 127, torch.int8)
    return torch.nn.functional.linear(data, w, self.bias)


def branch(self: Of, x: torch.Tensor, y: torch.Tensor) -> Any:
    return torch.cond(y, lambda a: a.sin() + self.w, lambda a: a.cos(), (x,))


def loop(self: Of, x: torch.Tensor, y: torch.Tensor) -> Any:
    zero = torch.zeros((), dtype=torch.int64)
    return while_loop(lambda k, a: k < y, lambda k, a: (k + 1, a * self.w + 1), (zero, x))


def scanned(self: Of, x: torch.Tensor, y: torch.Tensor) -> Any:
    def step(carried: torch.Tensor, row: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        after = carried * 0.5 + row
        return after, after.sum()

    return scan(step, y, x, dim=0)


class Attention(nn.Module):
    """Attention of a sequence to itself, normalised, in f16."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(16)
        self.attention = nn.MultiheadAttention(16, 2, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(x)
        return x + self.attention(y, y, y, need_weights=False)[0]


def item(self: Of, x: torch.Tensor, y: torch.Tensor) -> Any:
    k = y.item()
    torch._check(k >= 1)
    torch._check(k <= 4)
    return x[:k], torch.ones(k + 1)


def grow(self: Of, x: torch.Tensor) -> Any:
    n = x.shape[0]
    rest = (n + 3) // 4 * 4 - n
    return torch.nn.functional.pad(x, (0, 0, 0, rest)), torch.arange(n), x.reshape(n * 2, -1)


class Regions(nn.Module):
    """Regions without gradients: several results, writes through views that go in and come out, a nested one."""

    @torch.no_grad()
    def table(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        with torch.enable_grad():
            s = x.sin()
        return x.cos(), s

    def forward(self, x: torch.Tensor) -> Any:
        y = x * 1
        with torch.no_grad():
            row = y[0]
            row.add_(1)
        row.mul_(2)
        c, s = self.table(y)
        with torch.autocast("cpu", enabled=False):
            product = c.float() @ s.mT
        return y, product


class Autocast(nn.Module):
    """A region whose products are of bf16, within it one whose products are not: casts are no nodes of the export."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.norm = nn.Linear(16, 16), nn.LayerNorm(16)

    def forward(self, x: torch.Tensor) -> Any:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = self.norm(self.linear(x))
            with torch.autocast("cpu", enabled=False):
                z = x @ x.mT
            return y, x @ y.mT, z


def regions_inside(self: Of, x: torch.Tensor, y: torch.Tensor) -> Any:
    """Regions in a branch, a loop, a scan and the rows of a map."""

    def cosine(a: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            return a.cos()

    zero = torch.zeros((), dtype=torch.int64)
    branched = torch.cond(y[0] > 0, cosine, lambda a: a.sin(), (x,))
    looped = while_loop(lambda k, a: k < 3, lambda k, a: (k + 1, cosine(a) * a), (zero, x))[1]
    rows = map_rows(lambda a: cosine(a) * 2, x)
    return branched, looped, rows, scan(lambda c, a: (c + cosine(a), c * a), y, x, dim=0)[1]


def wide_product(self: Of, x: torch.Tensor) -> torch.Tensor:
    return out_dtype(torch.ops.aten.mm.default, torch.int32, x.to(torch.int8), self.w)


def derived(self: Of, x: torch.Tensor, y: torch.Tensor) -> Any:
    """Sizes m + 1 and 2 h: no dimension is m or h."""
    return x[:, 1:] + y.sum(), torch.nn.functional.avg_pool1d(y[None], 2)


F = torch.randn
WEIGHTS = {
    "w": torch.randint(-127, 128, (6, 4, 3, 3), dtype=torch.int8),
    "scales": torch.rand(6) * 0.01 + 0.001,
    "zeros": torch.zeros(6, dtype=torch.int64),
    "bias": F(6) * 0.1,
}
OPEN = ({0: Dim("n", min=2, max=64)},)
H, M = Dim("h", min=1, max=32), Dim("m", min=1, max=9)
# name, module, inputs of each inference, sizes
PROGRAMS: list[tuple[str, nn.Module, list[tuple[Any, ...]], Any]] = [
    ("nested", Nested(), [(F(2, 3), {"p": F(2, 4), "q": [F(3)]}), (F(4, 3), {"p": F(2, 4), "q": [F(3)]})], None),
    ("row_in_place", Of(row_in_place), [(F(3, 4),), (F(3, 4),)], None),
    ("cache", Of(cache, cache=F(3, 4), place=torch.tensor([0])), [(F(3, 2),), (F(3, 2),)], None),
    ("written", Of(written), [(F(3, 2),), (F(3, 2),)], None),
    ("branch", Of(branch, w=F(3)), [(F(3), torch.tensor(True)), (F(3), torch.tensor(False))], None),
    ("loop", Of(loop, w=F(3)), [(F(3), torch.tensor(4)), (F(3), torch.tensor(0))], None),
    ("scan", Of(scanned), [(F(5, 3), F(3)), (F(5, 3), F(3))], None),
    ("map", Of(lambda _, x, y: map_rows(lambda a, b: a * 2 + b, x, y)), [(F(5, 3), F(3)), (F(5, 3), F(3))], None),
    ("item", Of(item), [(F(5, 3), torch.tensor(3)), (F(5, 3), torch.tensor(1))], None),
    ("grow", Of(grow), [(F(5, 4),), (F(9, 4),)], OPEN),
    ("quantised", Of(quantized, **WEIGHTS), [(F(1, 4, 8, 8),), (F(1, 4, 8, 8),)], None),
    ("conv_bf16", nn.Conv2d(3, 4, 3).bfloat16(), [(F(1, 3, 8, 8).bfloat16(),)] * 2, None),
    ("attention_f16", Attention().half(), [(F(2, 5, 16).half(),)] * 2, None),
    ("regions", Regions(), [(F(3, 4),), (F(3, 4),)], None),
    ("autocast", Autocast(), [(F(3, 16),), (F(3, 16),)], None),
    ("regions_inside", Of(regions_inside), [(F(5, 3), F(3)), (F(5, 3), F(3))], None),
    ("wide_product", Of(wide_product, w=WEIGHTS["w"][0, 0]), [(F(5, 3) * 40,)] * 2, None),
    ("number_as_tensor", Of(lambda _, x: torch.special.xlog1py(2.0, x)), [(torch.rand(3),)] * 2, None),
    ("derived", Of(derived), [(F(2, 5), F(2, 8)), (F(2, 9), F(2, 12))], ({1: M + 1}, {1: 2 * H})),
    ("quantised_by_range", Of(quantized_by_range, **WEIGHTS), [(F(5, 36),), (F(5, 36) - 1,)], None),
]


def sizes_of(name: str, shapes: Any) -> Any:
    if name == "nested":
        return {"image": {0: Dim("batch", min=1, max=64)}, "extra": {"p": None, "q": [None]}}
    return shapes and dict(zip("xy", shapes, strict=False))


def main() -> None:
    store, cases = Store(), []
    for name, module, runs, shapes in PROGRAMS:
        program = export(module.eval(), pytree.tree_map(torch.clone, runs[0]), dynamic_shapes=sizes_of(name, shapes))
        made = [parts(program, store), parts(program.run_decompositions(), store)]  # before buffers change
        fresh, ran = program.module(), list[Any]()
        for given in runs:
            entries = [store.entry(t) for t in pytree.tree_leaves(given)]
            held = pytree.tree_map(torch.clone, given)
            wanted = [store.entry(t) for t in outputs(pytree.tree_leaves(fresh(*held)))]
            wanted += [store.entry(held[0])] if name == "written" else []
            ran.append({"inputs": entries, "outputs": wanted})
        cases += [{"name": name + end, "program": m, "runs": ran} for end, m in zip(("", "_core"), made, strict=True)]
    files = {"cases.json": json.dumps(cases, separators=(",", ":")).encode(), "data.bin": bytes(store.data)}
    with zipfile.ZipFile(FILE, "w") as archive:
        for entry, data in files.items():
            archive.writestr(zipfile.ZipInfo(entry, DATE), data, zipfile.ZIP_DEFLATED, 9)


if __name__ == "__main__":
    main()
