"""Adapters that are chosen when a model runs give the logits of the model whose weights they were added to."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from aot import compile_model
from aot.frontends.adapters import read_adapter
from aot.runtime import Batch, Generator
from aot.runtime.errors import AotError, CorruptError, UnsupportedError, UsageError
from aot.runtime.generation.interface import LORA_A, LORA_B
from aot.runtime.model import CompiledModel
from tests.frontends.gguf.files import write as write_gguf
from tests.frontends.huggingface.folders import Array, safetensors, write
from tests.frontends.huggingface.test_folders import CONFIG, IDS, INNER, WIDTH, tensors

RANK, ALPHA = 3, 6.0
CONFIGURATION: Mapping[str, object] = {"peft_type": "LORA", "r": RANK, "lora_alpha": ALPHA}
Pairs = dict[str, tuple[Array, Array]]


def pairs(rank: int = RANK) -> Pairs:
    """Return matrices A and B of some modules, with names as folders have them."""
    rng, sizes = np.random.default_rng(5), {"self_attn.q_proj": (WIDTH, WIDTH), "self_attn.v_proj": (WIDTH, WIDTH)}
    sizes |= {"mlp.up_proj": (INNER, WIDTH), "mlp.down_proj": (WIDTH, INNER)}
    return {
        f"model.layers.0.{name}": (
            rng.standard_normal((rank, columns)).astype(np.float32),
            0.2 * rng.standard_normal((rows, rank)).astype(np.float32),
        )
        for name, (rows, columns) in sizes.items()
    }


def peft(folder: Path, given: Pairs, **more: object) -> Path:
    """Write a folder of PEFT."""
    folder.mkdir()
    parts = {f"base_model.model.{k}.lora_{n}.weight": m for k, p in given.items() for n, m in zip("AB", p, strict=True)}
    (folder / "adapter_model.safetensors").write_bytes(safetensors(parts))
    (folder / "adapter_config.json").write_text(json.dumps({**CONFIGURATION, **more}))
    return folder


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> CompiledModel:
    folder = write(tmp_path_factory.mktemp("lora") / "m", CONFIG, tensors())
    return compile_model(folder, threads=1, lora_rank=4, row_lengths=True)


def test_a_folder_has_the_logits_of_merged_weights(model: CompiledModel, tmp_path: Path) -> None:
    """Ranks may differ by module, and so may factors; two rows of a batch share the adapter."""
    given = pairs()
    a, b = given["model.layers.0.mlp.up_proj"]
    given["model.layers.0.mlp.up_proj"] = a[:2], b[:, :2]
    made = read_adapter(peft(tmp_path / "a", given, alpha_pattern={"mlp.up_proj": 4.0}), model.manifest)
    merged = tensors()
    for name, (a, b) in given.items():
        merged[f"{name}.weight"] = (merged[f"{name}.weight"] + ALPHA / RANK * b @ a).astype(np.float32)
    wanted = Generator(compile_model(write(tmp_path / "merged", CONFIG, merged), threads=1)).feed(IDS)
    found = Generator(model, made).feed(IDS)
    assert np.abs(found - wanted).max() < 1e-4 * np.abs(wanted).max()
    plain = compile_model(write(tmp_path / "m", CONFIG, tensors()), threads=1)
    assert np.array_equal(Generator(model).feed(IDS), Generator(plain).feed(IDS))
    assert np.abs(found - Generator(plain).feed(IDS)).max() > 0.1 * np.abs(wanted).max()
    with pytest.raises(UsageError, match="must be compiled with --lora-rank"):
        read_adapter(tmp_path / "a", plain.manifest)
    batch, sequence = Batch(model), Generator(model, made)
    sequence.feed(IDS[:-1])
    batch.add(sequence)
    batch.add(sequence.fork())
    assert np.array_equal(batch.step([IDS[-1]] * 2), [found, found])
    other = Generator(model)
    other.feed(IDS)
    with pytest.raises(UsageError, match="all rows must have the same adapter, got another one"):
        batch.add(other)
    assert len(batch.lengths) == 2


def test_gguf_holds_what_a_folder_holds(model: CompiledModel, tmp_path: Path) -> None:
    """Rows of queries and keys of a llama lie in pairs in GGUF, and in halves in folders and libraries."""
    names = {
        "self_attn.q_proj": "attn_q",
        "self_attn.v_proj": "attn_v",
        "mlp.up_proj": "ffn_up",
        "mlp.down_proj": "ffn_down",
    }
    parts: dict[str, tuple[str, tuple[int, ...], bytes]] = {}
    for name, (a, b) in pairs().items():
        short = names[name.removeprefix("model.layers.0.")]
        rows = b if short != "attn_q" else b.reshape(2, 2, WIDTH // 4, RANK).swapaxes(1, 2).reshape(WIDTH, RANK)
        parts |= {f"blk.0.{short}.weight.lora_{n}": ("F32", m.shape, m.tobytes()) for n, m in (("a", a), ("b", rows))}
    kinds = {"general.architecture": "llama", "general.type": "adapter", "adapter.type": "lora"}
    file = write_gguf(tmp_path / "a.gguf", {**kinds, "adapter.lora.alpha": ALPHA}, parts)
    found, wanted = (read_adapter(path, model.manifest) for path in (file, peft(tmp_path / "a", pairs())))
    assert all(np.array_equal(found[name], wanted[name]) and wanted[name].any() for name in (LORA_A, LORA_B))


WRONG: Mapping[str, tuple[Mapping[str, object], Pairs, type[AotError], str]] = {
    "another kind": ({"peft_type": "IA3"}, {}, UnsupportedError, "of type LORA .* got IA3"),
    "a direction": ({"use_dora": True}, pairs(), UnsupportedError, "got LORA, use_dora True"),
    "a greater rank": ({}, pairs(5), UsageError, r"the rank can be at most 4 \(--lora-rank\), got 5"),
    "a pattern": ({"alpha_pattern": {".*q": 1.0}}, pairs(), UnsupportedError, "ends of names can be read, got"),
    "another module": (
        {},
        {"model.embed_tokens": pairs()["model.layers.0.mlp.up_proj"]},
        UnsupportedError,
        "adapters of attn_k, attn_output, .* can be read, got 'model.embed_tokens'",
    ),
    "a layer too many": (
        {},
        {"model.layers.1.mlp.up_proj": pairs()["model.layers.0.mlp.up_proj"]},
        UnsupportedError,
        "got 'blk.1.ffn_up'",
    ),
    "another shape": (
        {},
        {"model.layers.0.mlp.up_proj": pairs()["model.layers.0.mlp.down_proj"]},
        CorruptError,
        r"ffn_up: matrices are \[rank, 32\] and \[40, rank\], got \[3, 40\] and \[32, 3\]",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_adapters_that_do_not_fit_are_named(name: str, model: CompiledModel, tmp_path: Path) -> None:
    more, given, error, text = WRONG[name]
    with pytest.raises(error, match=text):
        read_adapter(peft(tmp_path / "a", given, **more), model.manifest)
