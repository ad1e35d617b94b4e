"""Networks of timm with random weights, few layers and small pictures: the smallest ones of each file. Needs timm."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import timm
import torch
from torch import nn

from benchmarks.pytorch.network import draw_silent_weights

MOST = 3  # networks of a file
SIDES = (64, 96, 128, 224, 256)  # of pictures; the first one that a network takes
DEPTHS = ("depth", "depths", "layers", "num_layers", "blocks")  # arguments that say how many layers there are


def load() -> None:
    """Import what all networks need, once: each has a process that is a fork of this one."""
    import aot.frontends.pt2.convert  # noqa: F401, PLC0415


def names() -> list[str]:
    """Return up to `MOST` networks of each of timm's files: one of each, then a second one, and so on."""
    files = [sorted(timm.list_models(module=m), key=_size)[:MOST] for m in timm.list_modules()]
    return [ms[i] for i in range(MOST) for ms in files if i < len(ms)]


def _size(name: str) -> tuple[int, int, str]:
    """Return a key that sorts networks by their size, as far as words, letters and numbers in the names tell it."""
    small = ("test", "nano", "atto", "femto", "pico", "zepto", "tiny", "xx", "mini", "small", "_xs", "_s", "_t")
    large = ("base", "large", "huge", "giant", "_l", "_b", "_x", "_m", "medium", "so400m", "7b", "1b", "3b")
    word = next((i for i, w in enumerate(small) if w in name), len(small))
    numbers = [int(n) for n in re.findall(r"\d+", name)]
    return word + 10 * sum(w in name for w in large), max(numbers, default=0), name


def network(name: str) -> tuple[Any, dict[str, Any]]:
    """Return a network in evaluation, and a picture for it."""
    module = _shrunk(name).eval()
    draw_silent_weights(module)
    with torch.no_grad():
        for norm in (m for m in module.modules() if isinstance(m, nn.BatchNorm2d) and m.running_var is not None):
            norm.running_var.uniform_(0.5, 2.0)
        for side in SIDES:
            given = {"x": torch.randn(1, 3, side, side)}
            with suppress(Exception):  # of many kinds: some networks take pictures of one size only
                module(**given)
                return module, given
    side = module.pretrained_cfg["input_size"][-1]
    return module, {"x": torch.randn(1, 3, side, side)}


def _shrunk(name: str) -> nn.Module:
    """Return a network whose stages have one layer, and whose pictures are small, where its arguments allow it."""
    home = sys.modules[timm.model_entrypoint(name).__module__]
    made: Callable[..., nn.Module] = home.build_model_with_cfg

    def smaller(model: Any, variant: str, pretrained: bool, **given: Any) -> nn.Module:
        taken = inspect.signature(model.__init__).parameters
        changed = {key: _fewer(given[key]) for key in DEPTHS if key in given}
        if "img_size" in taken and "img_size" not in given:
            changed["img_size"] = SIDES[0]
        for more in (changed, {k: v for k, v in changed.items() if k != "img_size"}, {}):
            with suppress(Exception):  # of many kinds: sizes that must fit others
                return made(model, variant, pretrained, **(given | more))
        return made(model, variant, pretrained, **given)

    home.build_model_with_cfg = smaller
    return timm.create_model(name, pretrained=False, num_classes=10)


def _fewer(layers: Any) -> Any:
    """Return one layer for each stage, two for a network without stages."""
    if isinstance(layers, int):
        return min(layers, 2)
    return type(layers)(1 if isinstance(n, int) else n for n in layers)
