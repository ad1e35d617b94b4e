"""Networks of transformers in GGUF: 64 greedy tokens are PyTorch's, and logits those that it has in f64."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from aot import compile_model
from aot.runtime import Generator
from aot.runtime.errors import UsageError
from tests.archives import arrays_of
from tests.frontends.gguf.files import write
from tests.frontends.gguf.references import logits_by_references

MODELS = Path(__file__).with_name("models")
PROMPT, EVERY = 5, 8
CLOSE = 1e-5  # of the largest logit
OTHERS = ("qwen2", "qwen3", "gemma3", "gpt2", "starcoder", "starcoder2", "phi2")
ARCHITECTURES = {"llama": "llama", "smollm": "llama"} | {name: name for name in OTHERS}
COMPILED = ("smollm", "starcoder")  # llama, and the only architecture that no folder has
HEADS, HEADS_OF_VALUES = 4, {"gpt2": 4, "starcoder": 1}  # others have 2 heads of keys and values


def saved(name: str, folder: Path) -> Path:
    """Write a network as GGUF; its sizes are those of the tensors."""
    found = arrays_of(MODELS / f"{name}.npz")
    weights = {key.removeprefix("w:"): found[key] for key in found if key.startswith("w:")}
    layers = 1 + max(int(key.split(".")[1]) for key in weights if key.startswith("blk."))
    kept = HEADS_OF_VALUES.get(name, 2)
    apart = "blk.0.attn_q.weight" in weights
    sizes = [weights[f"blk.0.attn_{k}.weight"].shape[0] // n for k, n in (("q", HEADS), ("v", kept))] if apart else []
    facts = {
        "block_count": layers,
        "embedding_length": 64,
        "feed_forward_length": 96,
        "attention.head_count": HEADS,
        "attention.head_count_kv": kept,
        **dict(zip(("attention.key_length", "attention.value_length"), sizes, strict=False)),
        "attention.layer_norm_rms_epsilon": 1e-5,
        "attention.layer_norm_epsilon": 1e-5,
        "rope.freq_base": 1e6 if name == "gemma3" else 1e4,
        **({"attention.sliding_window": 16} if name == "gemma3" else {}),
        **({"rope.dimension_count": 8} if name == "phi2" else {}),
    }
    architecture = ARCHITECTURES[name]
    metadata = {"general.architecture": architecture} | {f"{architecture}.{k}": v for k, v in facts.items()}
    tensors = {k: ("F32", a.shape, a.astype(np.float32).tobytes()) for k, a in weights.items()}
    return write(folder / f"{name}.gguf", metadata, tensors)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_logits_are_those_of_pytorch(name: str, tmp_path: Path) -> None:
    """By the references of the opset: layers of an architecture are those of `huggingface/test_transformers.py`."""
    found = arrays_of(MODELS / f"{name}.npz")
    got = logits_by_references(saved(name, tmp_path), found["tokens"].tolist(), 6 * EVERY)[::EVERY]
    np.testing.assert_allclose(got, found["logits"], rtol=0, atol=CLOSE * np.abs(found["logits"]).max())


@pytest.mark.parametrize("name", COMPILED)
def test_tokens_and_logits_of_compiled_networks_are_those_of_pytorch(name: str, tmp_path: Path) -> None:
    found = arrays_of(MODELS / f"{name}.npz")
    tokens, logits = found["tokens"].tolist(), found["logits"]
    model = compile_model(saved(name, tmp_path), threads=1)
    assert Generator(model).generate(tokens[:PROMPT], 64) == tokens[PROMPT:]
    one = Generator(model)
    bound = CLOSE * np.abs(logits).max()
    for n, token in enumerate(tokens):
        got = one.feed([token])
        if n % EVERY == 0:
            np.testing.assert_allclose(got, logits[n // EVERY], rtol=0, atol=bound)


def test_a_sequence_longer_than_the_table_of_positions_is_refused(tmp_path: Path) -> None:
    generator = Generator(compile_model(saved("gpt2", tmp_path), threads=1))
    generator.feed([1] * 250)
    with pytest.raises(UsageError, match="input 'attention_mask': dimension 1 'total' must be 1 to 256, got 257"):
        generator.feed([1] * 7)
    assert len(generator.tokens) == 250
