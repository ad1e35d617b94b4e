"""Networks of timm with random weights, few layers and small pictures: the smallest of each family. Needs timm."""

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

from benchmarks.pytorch.network import check_dependence, draw_silent_weights, set_statistics

# Words of names that say how large a network is: a family is a file and the other words of a name.
SMALL = "test nano atto femto pico zepto tiny xx xxs xxtiny mini small xs s t".split()
LARGE = "base large huge giant gigantic enormous medium little wide m l b x xl xxl d c g h p r v so dm".split()
SIDES = (64, 96, 128, 224, 256)  # of pictures; the first one that a network takes
DEPTHS = ("depth", "depths", "layers", "num_layers", "blocks")  # arguments that say how many layers there are


def load() -> None:
    """Import what all networks need, once: each has a process that is a fork of this one."""
    import aot.frontends.pt2.convert  # noqa: F401, PLC0415


def names() -> list[str]:
    """Return the smallest network of each family."""
    found = dict[tuple[str, ...], list[str]]()
    for file in timm.list_modules():
        for name in timm.list_models(module=file):
            words = (w for w in _words(name) if w not in (*SMALL, *LARGE, "patch", "window"))
            found.setdefault((file, *words), []).append(name)
    return [min(family, key=_size) for family in found.values()]


def _words(name: str) -> list[str]:
    return re.findall("[a-z]+", name)


def _size(name: str) -> tuple[int, int, str]:
    """Return a key that sorts networks by their size, as far as words, letters and numbers in the names tell it."""
    words = _words(name)
    word = min((SMALL.index(w) for w in words if w in SMALL), default=len(SMALL))
    numbers = [int(n) for n in re.findall(r"\d+", name)]
    return word + 20 * sum(w in LARGE for w in words), max(numbers, default=0), name


def network(name: str) -> tuple[Any, dict[str, Any]]:
    """Return a network in evaluation, and a picture for it; as it is where no picture fits it with fewer layers."""
    module = _shrunk(name)
    given = _picture(module)
    if given is None:
        module = timm.create_model(name, pretrained=False, num_classes=10)
        given = _picture(module)
    if given is None:
        raise ValueError(f"{name} takes a picture of one of {SIDES} pixels, got none that it takes")
    draw_silent_weights(module)
    set_statistics(module, given)
    check_dependence(module, given)
    return module, given


def _picture(module: nn.Module) -> dict[str, Any] | None:
    """Return the smallest picture that a network takes, None if it takes none of `SIDES` or of its own size."""
    module.eval()
    for size in (*((3, side, side) for side in SIDES), module.pretrained_cfg["input_size"]):
        given = {"x": torch.randn(1, *size)}
        with suppress(Exception), torch.no_grad():  # of many kinds: some networks take pictures of one size only
            module(**given)
            return given
    return None


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
    try:
        return timm.create_model(name, pretrained=False, num_classes=10)
    finally:
        home.build_model_with_cfg = made


def _fewer(layers: Any) -> Any:
    """Return one layer for each stage, two for a network without stages."""
    if isinstance(layers, int):
        return min(layers, 2)
    return type(layers)(1 if isinstance(n, int) else n for n in layers)
