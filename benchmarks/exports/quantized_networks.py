"""Networks as PyTorch's and torchao's pages quantise them. Needs torchao. A name is `WAY/NETWORK`.

A network is one of those here, of two to seven products, or one of another family: `timm.mobilenetv2_035`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree
from torchao import quantization as ao
from torchao.quantization.granularity import PerGroup
from torchao.quantization.pt2e import quantize_pt2e as pt2e
from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x86
from torchao.quantization.quant_primitives import MappingType
from torchao.testing.pt2e import _xnnpack_quantizer as xnnpack
from torchao.utils import unwrap_tensor_subclass

SAMPLES = 4  # inferences whose ranges become scales


class Residual(nn.Module):
    """Two convolutions beside their input."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(16, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU())
        self.second = nn.Sequential(nn.Conv2d(16, 16, 3, padding=1), nn.BatchNorm2d(16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x + self.second(self.first(x)))


class Squeeze(nn.Module):
    """Channels weighted by their means, as in MobileNetV3."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.down, self.up = nn.Conv2d(channels, 8, 1), nn.Conv2d(8, channels, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mean = nn.functional.adaptive_avg_pool2d(x, 1)
        return x * nn.functional.hardsigmoid(self.up(torch.relu(self.down(mean))))


class Branches(nn.Module):
    """Branches that are joined, and a picture that is enlarged, as in U-Net and Inception."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Conv2d(3, 16, 1), nn.Conv2d(3, 16, 3, padding=1)
        self.down, self.up = nn.Conv2d(32, 32, 3, 2, 1), nn.ConvTranspose2d(32, 16, 2, 2)
        self.last = nn.Conv2d(48, 4, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        both = torch.cat([torch.relu(self.left(x)), torch.relu(self.right(x))], 1)
        return self.last(torch.cat([both, self.up(torch.relu(self.down(both)))], 1))


class Attention(nn.Module):
    """A layer of a transformer, written out."""

    def __init__(self, width: int = 64, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))
        self.norm, self.last = nn.LayerNorm(width), nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        y = self.norm(x)
        q, k, v = (
            f(y).view(batch, length, self.heads, width // self.heads).transpose(1, 2) for f in (self.q, self.k, self.v)
        )
        y = nn.functional.scaled_dot_product_attention(q, k, v)
        x = x + self.o(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(nn.functional.gelu(self.up(self.last(x))))


class Words(nn.Module):
    """A small classifier of texts."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.body, self.head = nn.Embedding(100, 64), Attention(), nn.Linear(64, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(self.table(x)).mean(1))


class Recurrent(nn.Module):
    """An LSTM between linear layers."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.body, self.head = nn.Linear(64, 64), nn.LSTM(64, 64, batch_first=True), nn.Linear(64, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(self.first(x))[0][:, -1])


def images(*layers: nn.Module, channels: int = 16) -> nn.Module:
    """Return a classifier of pictures: a stem, the layers, and a head."""
    stem = (nn.Conv2d(3, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2))
    return nn.Sequential(*stem, *layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 10))


def separable() -> nn.Module:
    """Return an inverted bottleneck with a depthwise convolution."""
    wide = (nn.Conv2d(16, 48, 1), nn.BatchNorm2d(48), nn.ReLU6())
    deep = (nn.Conv2d(48, 48, 3, padding=1, groups=48), nn.BatchNorm2d(48), nn.Hardswish())
    return images(*wide, *deep, nn.Conv2d(48, 32, 1), channels=32)


def signal() -> nn.Module:
    """Return convolutions over a signal."""
    layers = (nn.Conv1d(8, 32, 5, 2, 2), nn.ReLU(), nn.Conv1d(32, 32, 3, dilation=2, padding=2), nn.SiLU())
    return nn.Sequential(*layers, nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(32, 10))


def perceptron() -> nn.Module:
    return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.GELU(), nn.Linear(128, 10))


PICTURE = (2, 3, 32, 32)
NETWORKS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "perceptron": (perceptron, (4, 64)),
    "residual": (lambda: images(Residual(), Residual()), PICTURE),
    "separable": (separable, PICTURE),
    "squeeze": (lambda: images(nn.Conv2d(16, 32, 1), nn.SiLU(), Squeeze(32), channels=32), PICTURE),
    "branches": (Branches, PICTURE),
    "groups": (lambda: images(nn.Conv2d(16, 32, 3, groups=4), nn.LeakyReLU(), channels=32), PICTURE),
    "signal": (signal, (2, 8, 100)),
    "attention": (Attention, (2, 7, 64)),
    "words": (Words, (2, 7)),
    "recurrent": (Recurrent, (2, 5, 64)),
}


def load() -> None:
    """Import what all networks need, once: each has a process that is a fork of this one."""
    import aot.frontends.pt2.convert  # noqa: F401, PLC0415


def names() -> list[str]:
    return [f"{way}/{network}" for way, (_, networks) in WAYS.items() for network in networks]


def network(name: str) -> tuple[Any, dict[str, Any]]:
    """Return a quantised network, and arguments for it."""
    way, _, kind = name.partition("/")
    module, given = _of_family(*kind.split(".")) if "." in kind else _small(kind)
    return WAYS[way][0](module, [given, *(_redrawn(given) for _ in range(SAMPLES - 1))]), given


def _small(kind: str) -> tuple[nn.Module, dict[str, Any]]:
    build, shape = NETWORKS[kind]
    module = build().eval()
    with torch.no_grad():
        for norm in (m for m in module.modules() if isinstance(m, nn.BatchNorm2d)):
            norm.running_var.uniform_(0.5, 2.0)
    given = torch.randn(shape) if kind != "words" else torch.randint(0, 100, shape)
    return module, {"input" if isinstance(module, nn.Sequential) else "x": given}


def _of_family(family: str, name: str) -> tuple[nn.Module, dict[str, Any]]:
    module, given = import_module(f"benchmarks.exports.{family}_networks").network(name)
    if getattr(getattr(module, "config", None), "use_cache", False):
        module.config.use_cache = False
    return module, given


def _redrawn(given: dict[str, Any]) -> dict[str, Any]:
    """Return other arguments of the same sizes: numbers are drawn, those of words stand in the other order."""
    return {k: torch.randn_like(x) if x.is_floating_point() else x.flip(-1) for k, x in given.items()}


def layers(module: Any, inputs: dict[str, Any]) -> tuple[Any, dict[str, Any]] | None:
    """Return a network of PT2E whose layers get what PyTorch's own give, all as inputs, and arguments; else None.

    Its results are the levels that each layer gives: a number in the middle of two, which the sums of one order round
    up and those of another down, changes one level then, not all those that follow.
    """
    if not isinstance(module, torch.fx.GraphModule):
        return None
    cut = copy.deepcopy(module)
    graph, recorder = cut.graph, torch.fx.Interpreter(cut, garbage_collect_values=False)
    graph.set_codegen(torch.fx.graph.CodeGen())  # arguments and results as they are, in no containers
    given = [n for n in graph.nodes if n.op == "placeholder"]
    levels = [n for n in graph.nodes if str(n.target).startswith("quantized_decomposed.quantize_per_tensor.default")]
    if not levels:
        return None
    with torch.no_grad():
        recorder.run(*pytree.tree_leaves(inputs))
    arguments = {n.name: recorder.env[n] for n in given}
    taken = given[-1]
    for i, node in enumerate(levels):
        with graph.inserting_after(taken):
            taken = graph.placeholder(f"levels_{i}")
        node.replace_all_uses_with(taken)
        arguments[taken.name] = recorder.env[node]
    graph.output_node().args = (tuple(levels),)
    graph.eliminate_dead_code()
    cut.recompile()
    return cut, arguments


def _x86(module: Any, samples: list[dict[str, Any]], **options: bool) -> Any:
    quantizer = x86.X86InductorQuantizer()
    quantizer.set_global(x86.get_default_x86_inductor_quantization_config(**options))
    return _converted(module, samples, quantizer, options.get("is_qat", False))


def _xnnpack(module: Any, samples: list[dict[str, Any]], **options: bool) -> Any:
    quantizer = xnnpack.XNNPACKQuantizer()
    quantizer.set_global(xnnpack.get_symmetric_quantization_config(**options))
    return _converted(module, samples, quantizer, options.get("is_qat", False))


def _converted(module: Any, samples: list[dict[str, Any]], quantizer: Any, trains: bool) -> Any:
    program = torch.export.export(module, (), samples[0]).module()
    prepared = (pt2e.prepare_qat_pt2e if trains else pt2e.prepare_pt2e)(program, quantizer)
    for sample in samples:
        prepared(**sample)
    return pt2e.convert_pt2e(prepared)


def _torchao(module: Any, samples: list[dict[str, Any]], config: Any) -> Any:
    changed = copy.deepcopy(module)
    ao.quantize_(changed, config)
    return unwrap_tensor_subclass(changed)


Way = Callable[[Any, list[dict[str, Any]]], Any]


def _of(config: Any) -> Way:
    return lambda module, samples: _torchao(module, samples, config)


LINEAR = ("perceptron", "attention", "words", "recurrent")
PICTURES = tuple(
    f"timm.{name}"
    for name in "mobilenetv2_035 mobilenetv3_small_050 mnasnet_small ghostnet_050 regnetx_002 test_resnet resnet18 "
    "test_efficientnet test_convnext test_vit mobilevit_xs densenet121".split()
)
ENCODERS = tuple(f"transformers.{name}" for name in "bert distilbert deberta mobilebert vit wav2vec2".split())
DECODERS = tuple(f"transformers.{name}" for name in "llama gpt2 qwen3 mistral gemma2 phi3".split())
BOTH = ("transformers.t5", "transformers.whisper", "transformers.bart")
WAYS: dict[str, tuple[Way, Iterable[str]]] = {
    "x86": (_x86, (*NETWORKS, *PICTURES, *ENCODERS)),
    "x86-qat": (lambda m, s: _x86(m, s, is_qat=True), ("perceptron", "residual")),
    "x86-dynamic": (lambda m, s: _x86(m, s, is_dynamic=True), (*LINEAR, *ENCODERS[:2], *BOTH[:1])),
    "x86-reduced": (lambda m, s: _x86(m, s, reduce_range=True), ("perceptron", "residual")),
    "xnnpack": (_xnnpack, ("perceptron", "residual", "separable", "attention")),
    "xnnpack-channel": (lambda m, s: _xnnpack(m, s, is_per_channel=True), (*NETWORKS, *PICTURES, *ENCODERS[:1])),
    "xnnpack-dynamic": (
        lambda m, s: _xnnpack(m, s, is_per_channel=True, is_dynamic=True),
        (*LINEAR, *ENCODERS[:2]),
    ),
    "xnnpack-qat": (lambda m, s: _xnnpack(m, s, is_per_channel=True, is_qat=True), ("perceptron", "residual")),
    "int8-weights": (_of(ao.Int8WeightOnlyConfig()), (*LINEAR, *DECODERS[:3], *BOTH)),
    "int8-dynamic": (_of(ao.Int8DynamicActivationInt8WeightConfig()), (*LINEAR, *ENCODERS, *DECODERS[:2], *BOTH)),
    "int8-dynamic-asymmetric": (
        _of(ao.Int8DynamicActivationInt8WeightConfig(act_mapping_type=MappingType.ASYMMETRIC)),
        ("perceptron", "words"),
    ),
    "int4-weights": (_of(ao.IntxWeightOnlyConfig(torch.int4, PerGroup(32))), LINEAR),
    "int8-dynamic-int4": (_of(ao.Int8DynamicActivationIntxWeightConfig(torch.int4, PerGroup(32))), LINEAR),
    "int4-weights-16": (_of(ao.IntxWeightOnlyConfig(torch.int4, PerGroup(16))), (*DECODERS, *BOTH)),
    "int8-dynamic-int4-16": (
        _of(ao.Int8DynamicActivationIntxWeightConfig(torch.int4, PerGroup(16))),
        (*DECODERS, *BOTH),
    ),
    "float8-weights": (_of(ao.Float8WeightOnlyConfig()), ("perceptron",)),
}
