"""Folders with small weights: each packing has the logits of the same numbers in f32; damaged tensors are named."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from aot import compile_model
from aot.frontends.huggingface.container import read_file_tensors
from aot.runtime import Generator
from aot.runtime.errors import AotError, CorruptError, UnsupportedError
from tests.frontends.gguf.references import logits_by_references
from tests.frontends.huggingface.folders import weight, write
from tests.frontends.huggingface.test_folders import CONFIG, IDS, tensors
from tests.frontends.huggingface.test_transformers import network

SIZE = 16  # of a group
Numbers = NDArray[Any]
Tensors = dict[str, Numbers]
GIVEN = {**CONFIG, "intermediate_size": 48}


def packed(values: Numbers, bits: int, axis: int, order: tuple[int, ...] | None = None) -> Numbers:
    """Pack integers along an axis, element by element; `order`: the element that is in each place of a word."""
    lines = np.moveaxis(values, axis, -1)
    per = 32 // bits
    made = np.zeros((*lines.shape[:-1], lines.shape[-1] // per), np.uint32)
    for place in range(per):
        made |= lines[..., slice((order or range(per))[place], None, per)].astype(np.uint32) << np.uint32(place * bits)
    return np.ascontiguousarray(np.moveaxis(made, -1, axis)).view(np.int32)


def gptq(base: str, whole: Numbers, zeros: Numbers, scales: Numbers, bits: int, *, after: int = 1) -> Tensors:
    return {
        f"{base}.qweight": packed(whole.T, bits, 0),
        f"{base}.qzeros": packed(zeros.T - after, bits, 1),
        f"{base}.scales": scales.T.copy(),
        f"{base}.g_idx": np.arange(whole.shape[1], dtype=np.int32) // SIZE,
    }


def gptq_v2(base: str, whole: Numbers, zeros: Numbers, scales: Numbers, bits: int) -> Tensors:
    return gptq(base, whole, zeros, scales, bits, after=0)


def awq(base: str, whole: Numbers, zeros: Numbers, scales: Numbers, bits: int) -> Tensors:
    order = (0, 2, 4, 6, 1, 3, 5, 7)
    named = {"qweight": packed(whole.T, bits, 1, order), "qzeros": packed(zeros.T, bits, 1, order)}
    return {f"{base}.{name}": array for name, array in named.items()} | {f"{base}.scales": scales.T.copy()}


def tensors_packed(base: str, whole: Numbers, zeros: Numbers, scales: Numbers, bits: int) -> Tensors:
    shape = np.array(whole.shape, np.int64)
    named = {"weight_packed": packed(whole, bits, 1), "weight_shape": shape, "weight_scale": scales}
    return {f"{base}.{k}": v for k, v in named.items()} | {f"{base}.weight_zero_point": packed(zeros, bits, 0)}


def tensors_whole(base: str, whole: Numbers, zeros: Numbers, scales: Numbers, bits: int) -> Tensors:
    del zeros
    return {f"{base}.weight": (whole.astype(int) - 128).astype(np.int8), f"{base}.weight_scale": scales}


def grouped(form: str, bits: int) -> dict[str, Any]:
    weights = {"num_bits": bits, "type": "int", "symmetric": False, "group_size": SIZE}
    return {"quant_method": "compressed-tensors", "format": form, "config_groups": {"group_0": {"weights": weights}}}


KINDS: Mapping[str, tuple[Callable[..., Tensors], int, dict[str, Any]]] = {
    "gptq 4": (gptq, 4, {"quant_method": "gptq", "bits": 4}),
    "gptq 8": (gptq, 8, {"quant_method": "gptq", "bits": 8}),
    "gptq_v2": (gptq_v2, 4, {"quant_method": "gptq", "bits": 4, "checkpoint_format": "gptq_v2"}),
    "awq": (awq, 4, {"quant_method": "awq", "bits": 4, "version": "gemm"}),
    "packed 4": (tensors_packed, 4, grouped("pack-quantized", 4)),
    "packed 8": (tensors_packed, 8, grouped("pack-quantized", 8)),
    "whole 8": (tensors_whole, 8, grouped("int-quantized", 8)),
}


def folders(folder: Path, kind: str) -> tuple[Tensors, Tensors, dict[str, Any]]:
    """Return the tensors of a folder of a kind, those of the same numbers in f32, and the configuration."""
    pack, bits, config = KINDS[kind]
    small: Tensors = {}
    plain: Tensors = {}
    for name, array in tensors().items():
        shape = [48 if n == 40 else n for n in array.shape]
        plain[name] = small[name] = weight(name, shape, 1.0)
        if "_proj" not in name:
            continue
        rows, columns = shape
        random = np.random.default_rng(len(name) + rows)
        whole = random.integers(0, 1 << bits, (rows, columns))
        groups = 1 if kind == "whole 8" else columns // SIZE
        most = (1 << bits) + (pack is gptq)  # the first format adds 1 to the greatest zero point
        zeros = random.integers(1, most, (rows, groups)) if groups > 1 else np.full((rows, 1), 128)
        zeros[0, 0] = most - 1 if groups > 1 else 128
        scales = (random.integers(1, 64, (rows, groups)) / 64 / (1 << bits)).astype(np.float16).astype(np.float32)
        wide = np.repeat(zeros, columns // groups, 1), np.repeat(scales, columns // groups, 1)
        plain[name] = ((whole - wide[0]) * wide[1]).astype(np.float32)
        del small[name]
        small |= pack(name.removesuffix(".weight"), whole, zeros, scales, bits)
    return small, plain, {**GIVEN, "quantization_config": config}


COMPILED = ("gptq 4", "packed 8", "whole 8")  # small numbers of groups and of rows; of others the references say enough


@pytest.mark.parametrize("kind", KINDS)
def test_small_weights_have_the_logits_of_the_same_numbers(kind: str, tmp_path: Path) -> None:
    """By the references of the opset, after all passes, and compiled."""
    small, plain, config = folders(tmp_path, kind)
    write(tmp_path / "small", config, small, "F16")
    write(tmp_path / "plain", GIVEN, plain)
    cut = len(IDS) - 1
    found, wanted = (logits_by_references(tmp_path / name, IDS, cut) for name in ("small", "plain"))
    assert np.abs(found - wanted).max() < 1e-5 * np.abs(wanted).max()
    if kind in COMPILED:
        last = Generator(compile_model(tmp_path / "small", threads=1, activations="f32")).feed(IDS)
        assert np.abs(last - wanted[-1]).max() < 1e-5 * np.abs(wanted[-1]).max()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["awq", "packed 8"])  # along the columns, and along the rows
def test_small_experts_have_the_logits_of_the_same_numbers(kind: str, tmp_path: Path) -> None:
    pack, bits, scheme = KINDS[kind]
    folder, tokens, _ = network("qwen3_moe", tmp_path)
    found = {name: np.array(t.array) for name, t in read_file_tensors(folder / "model.safetensors").items()}
    small, plain = dict(found), dict(found)
    for name in (name for name in found if ".experts." in name):
        rows, columns = found[name].shape
        random = np.random.default_rng(len(name) + rows)
        whole = random.integers(0, 1 << bits, (rows, columns))
        zeros = random.integers(1, 1 << bits, (rows, columns // SIZE))
        scales = (random.integers(1, 64, zeros.shape) / 64 / (1 << bits)).astype(np.float32)
        plain[name] = ((whole - np.repeat(zeros, SIZE, 1)) * np.repeat(scales, SIZE, 1)).astype(np.float32)
        del small[name]
        small |= pack(name.removesuffix(".weight"), whole, zeros, scales, bits)
    config = json.loads((folder / "config.json").read_text())
    wanted = logits_by_references(write(tmp_path / "plain", config, plain), tokens, len(tokens) - 1)[-1]
    path = write(tmp_path / "small", {**config, "quantization_config": scheme}, small)
    found = Generator(compile_model(path, activations="f32", threads=1)).feed(tokens)
    assert np.abs(found - wanted).max() < 1e-5 * np.abs(wanted).max()


LAYER = "model.layers.0.mlp.up_proj"
WRONG: Mapping[str, tuple[str, dict[str, Any], type[AotError], str]] = {
    "no zeros": ("gptq 4", {f"{LAYER}.qzeros": None}, CorruptError, "must have a tensor .*qzeros"),
    "other order": (
        "gptq 4",
        {f"{LAYER}.g_idx": np.arange(32, dtype=np.int32) % 2},
        UnsupportedError,
        r"desc_act false\) can be read",
    ),
    "another size": ("awq", {f"{LAYER}.qweight": np.zeros((32, 5), np.int32)}, CorruptError, r"I32 \[32, 6\], got I32"),
    "no group": ("awq", {f"{LAYER}.scales": np.zeros((0, 48), np.float32)}, CorruptError, "a number for each group"),
    "another shape": ("packed 4", {f"{LAYER}.weight_shape": np.array([48, 31])}, CorruptError, "another shape"),
}


@pytest.mark.parametrize("case", WRONG)
def test_damaged_tensors_are_named(case: str, tmp_path: Path) -> None:
    kind, changes, error, text = WRONG[case]
    small, _, config = folders(tmp_path, kind)
    changed = {name: array for name, array in (small | changes).items() if array is not None}
    with pytest.raises(error, match=text):
        compile_model(write(tmp_path / "m", config, changed, "F16"))
