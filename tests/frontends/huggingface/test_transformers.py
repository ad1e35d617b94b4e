"""Networks of transformers as folders: 64 greedy tokens are PyTorch's, and logits those that it has in f64."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from aot import compile_model
from aot.frontends import read_model
from aot.frontends.huggingface.container import read_file_tensors
from aot.runtime import Generator, load
from aot.text.library_texts import CONTEXT_LENGTH, FOLDER
from tests.archives import arrays_of
from tests.frontends.gguf import files
from tests.frontends.gguf.references import logits_by_references
from tests.frontends.huggingface.folders import Array, weight, write

MODELS = Path(__file__).with_name("models")
PROMPT, EVERY = 5, 8
CLOSE = 1e-5  # of the largest logit
NAMES = sorted(path.stem for path in MODELS.glob("*.npz"))
# windows and norms; halves beside each other, and positions of few of the numbers; sinks and experts; gates.
# `gguf/test_transformers.py` compiles llama, and norms with a mean
COMPILED = ("gemma3", "gpt_neox", "gpt_oss", "qwen3_moe")


def network(name: str, tmp_path: Path) -> tuple[Path, list[int], Array]:
    """Return the folder of a network, tokens, and logits of each eighth of them."""
    found = arrays_of(MODELS / f"{name}.npz")
    facts = json.loads(str(found["facts"]))
    tensors = {key: weight(key, shape, facts["around"]) for key, shape in facts["shapes"].items()}
    return write(tmp_path / name, facts["config"], tensors), found["tokens"].tolist(), found["logits"]


@pytest.mark.parametrize("name", NAMES)
def test_logits_are_those_of_pytorch(name: str, tmp_path: Path) -> None:
    """By the references of the opset."""
    folder, tokens, logits = network(name, tmp_path)
    got = logits_by_references(folder, tokens, 6 * EVERY)[::EVERY]
    np.testing.assert_allclose(got, logits, rtol=0, atol=CLOSE * np.abs(logits).max())


@pytest.mark.parametrize("name", COMPILED)
def test_tokens_and_logits_of_compiled_networks_are_those_of_pytorch(name: str, tmp_path: Path) -> None:
    folder, tokens, logits = network(name, tmp_path)
    model = compile_model(folder, threads=1)
    assert Generator(model).generate(tokens[:PROMPT], 64) == tokens[PROMPT:]
    one = Generator(model)
    for n, token in enumerate(tokens):
        got = one.feed([token])
        if n % EVERY == 0:
            np.testing.assert_allclose(got, logits[n // EVERY], rtol=0, atol=CLOSE * np.abs(logits).max())


def test_experts_have_equal_bits_for_any_cut_of_a_prompt(tmp_path: Path) -> None:
    folder, tokens, _ = network("qwen3_moe", tmp_path)
    compile_model(folder).export_model(tmp_path / "m.so")
    one = Generator(load(tmp_path / "m.so", threads=1))
    wanted = [one.feed([n]).tobytes() for n in tokens]
    for threads, size in ((1, 7), (2, 64), (3, 16)):
        generator = Generator(load(tmp_path / "m.so", threads=threads))
        for at in range(0, len(tokens), size):
            part = tokens[at : at + size]
            assert generator.feed(part).tobytes() == wanted[at + len(part) - 1]


def test_small_experts_of_a_folder_and_of_gguf_are_those_of_floats(tmp_path: Path) -> None:
    """Blocks of MXFP4 have the same numbers in both, in another order."""
    folder, tokens, _ = network("gpt_oss", tmp_path)
    config, count, width, inner = json.loads((folder / "config.json").read_text()), 4, 64, 96
    found = {name: np.array(t.array) for name, t in read_file_tensors(folder / "model.safetensors").items()}
    plain = dict(found)
    small: dict[str, NDArray[np.generic]] = {k: a for k, a in found.items() if not k.endswith("_proj")}
    named = {gguf_name(k): ("F32", a.shape, a.tobytes()) for k, a in small.items() if ".experts." not in k}
    for layer in range(2):
        at, to = f"model.layers.{layer}.mlp.experts", f"blk.{layer}.ffn_"
        for name, parts, rows, columns in (
            ("gate_up", ("gate", "up"), inner, width),
            ("down", ("down",), width, inner),
        ):
            codes, powers, floats = list[NDArray[np.uint8]](), list[NDArray[np.uint8]](), list[Array]()
            for part in parts:
                raw = files.random_bytes("MXFP4", (count, rows, columns), len(named))
                named[f"{to}{part}_exps.weight"] = ("MXFP4", (count, rows, columns), raw)
                blocks = np.frombuffer(raw, np.uint8).reshape(count, rows, columns // 32, 17)
                nibbles = np.concatenate([blocks[..., 1:] & 15, blocks[..., 1:] >> 4], -1)
                codes.append((nibbles[..., ::2] | nibbles[..., 1::2] << 4).astype(np.uint8))
                powers.append(blocks[..., 0])
                floats.append(np.array(files.meaning("MXFP4", raw), np.float32).reshape(count, rows, columns))
            shape = count, rows * len(parts), columns // 32
            small[f"{at}.{name}_proj_blocks"] = np.stack(codes, 2).reshape(*shape, 16)
            small[f"{at}.{name}_proj_scales"] = np.stack(powers, 2).reshape(shape)
            plain[f"{at}.{name}_proj"] = np.stack(floats, 2).reshape(*shape[:2], columns).swapaxes(1, 2).copy()
            bias = found[f"{at}.{name}_proj_bias"]
            for n, part in enumerate(parts):
                each = bias[:, n :: len(parts)].copy()
                named[f"{to}{part}_exps.bias"] = ("F32", each.shape, each.tobytes())
    facts: dict[str, object] = {
        "block_count": 2,
        "embedding_length": width,
        "feed_forward_length": inner,
        "expert_count": count,
        "expert_used_count": 2,
        "attention.head_count": 4,
        "attention.head_count_kv": 2,
        "attention.key_length": 16,
        "attention.value_length": 16,
        "attention.sliding_window": 16,
        "attention.layer_norm_rms_epsilon": float(config["rms_norm_eps"]),
        "rope.freq_base": 1e4,
        "rope.scaling.type": "yarn",
        "rope.scaling.factor": 4.0,
        "rope.scaling.original_context_length": 64,
    }
    config["swiglu_limit"] = 7.0  # which GGUF leaves out
    metadata = {"general.architecture": "gpt-oss", **{f"gpt-oss.{key}": value for key, value in facts.items()}}
    file = files.write(tmp_path / "m.gguf", metadata, named)
    wanted = logits_by_references(write(tmp_path / "plain", config, plain), tokens, 48)
    for model in (file, write(tmp_path / "small", {**config, "quantization_config": MXFP4}, small)):
        found_logits = logits_by_references(model, tokens, 48)
        np.testing.assert_allclose(found_logits, wanted, rtol=0, atol=CLOSE * np.abs(wanted).max())


def gguf_name(name: str) -> str:
    """Return llama.cpp's name of a tensor of gpt-oss."""
    base, _, kind = name.rpartition(".")
    if base in WHOLE:
        return f"{WHOLE[base]}.{kind}"
    layer, part = name.removeprefix("model.layers.").split(".", 1)
    if part == "self_attn.sinks":
        return f"blk.{layer}.attn_sinks.weight"
    names = {**GGUF_NAMES, "mlp.router": "ffn_gate_inp", "post_attention_layernorm": "post_attention_norm"}
    return f"blk.{layer}.{names[part.rpartition('.')[0]]}.{kind}"


MXFP4 = {"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]}
GGUF_NAMES = {
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "self_attn.o_proj": "attn_output",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate": "ffn_gate_inp",
    **{f"self_attn.{k}_proj": f"attn_{k}" for k in "qkv"},
    **{f"mlp.{k}_proj": f"ffn_{k}" for k in ("gate", "up", "down")},
}
WHOLE = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}


def test_experts_of_gguf_are_those_of_the_folder(tmp_path: Path) -> None:
    """llama.cpp always makes the probabilities of this architecture add up to 1, so the folder says the same."""
    kind = "Q4_0"  # of the experts; others are f32
    folder, tokens, _ = network("qwen3_moe", tmp_path)
    config = json.loads((folder / "config.json").read_text()) | {"norm_topk_prob": True}
    (folder / "config.json").write_text(json.dumps(config))
    found = {name: np.array(t.array) for name, t in read_file_tensors(folder / "model.safetensors").items()}
    named, plain = dict[str, Array](), dict(found)
    packed: dict[str, bytes] = {}
    for name, array in found.items():
        base = name.removesuffix(".weight")
        if base in WHOLE:
            named[f"{WHOLE[base]}.weight"] = array
            continue
        layer, part = base.removeprefix("model.layers.").split(".", 1)
        if not part.startswith("mlp.experts."):
            named[f"blk.{layer}.{GGUF_NAMES[part]}.weight"] = array
        elif part.startswith("mlp.experts.0."):
            exps = f"blk.{layer}.ffn_{part.rsplit('.', 1)[1].removesuffix('_proj')}_exps.weight"
            shape = (8, *array.shape)
            packed[exps] = files.random_bytes(kind, shape, len(packed))
            named[exps] = np.array(files.meaning(kind, packed[exps]), np.float32).reshape(shape)
            plain |= {name.replace("experts.0.", f"experts.{n}."): named[exps][n] for n in range(8)}
    facts: dict[str, object] = {
        "block_count": 3,
        "embedding_length": 64,
        "feed_forward_length": 96,
        "expert_count": 8,
        "expert_used_count": 3,
        "expert_feed_forward_length": 32,
        "attention.head_count": 4,
        "attention.head_count_kv": 2,
        "attention.key_length": 32,
        "attention.value_length": 32,
        "attention.layer_norm_rms_epsilon": float(config["rms_norm_eps"]),
        "rope.freq_base": float(config["rope_parameters"]["rope_theta"]),
    }
    metadata = {"general.architecture": "qwen3moe", **{f"qwen3moe.{key}": value for key, value in facts.items()}}
    tensors = {name: ("F32", array.shape, array.tobytes()) for name, array in named.items()}
    tensors |= {name: (kind, named[name].shape, raw) for name, raw in packed.items()}
    write(folder, config, plain)
    models = files.write(tmp_path / "m.gguf", metadata, tensors), folder
    one, other = (logits_by_references(model, tokens, 48) for model in models)
    np.testing.assert_allclose(one, other, rtol=0, atol=CLOSE * np.abs(other).max())


def test_the_context_length_has_another_name_in_gpt2(tmp_path: Path) -> None:
    folder, _, _ = network("gpt2", tmp_path)
    texts = read_model(folder).rt_info[FOLDER]
    assert isinstance(texts, dict) and texts[CONTEXT_LENGTH] == str(
        json.loads((folder / "config.json").read_text())["n_positions"]
    )
