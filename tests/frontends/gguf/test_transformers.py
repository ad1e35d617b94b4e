"""Networks of transformers in GGUF: 64 greedy tokens are PyTorch's, and logits those that it has in f64."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from aot import compile_model
from runtime import Generator
from tests.archives import arrays_of
from tests.frontends.gguf.files import write

MODELS = Path(__file__).with_name("models")
PROMPT, EVERY = 5, 8
CLOSE = 1e-5  # of the largest logit
ARCHITECTURES = {"llama": "llama", "smollm": "llama", "qwen2": "qwen2", "qwen3": "qwen3", "gemma3": "gemma3"}


def saved(name: str, folder: Path) -> Path:
    """Write a network as GGUF; its sizes are those of the tensors."""
    found = arrays_of(MODELS / f"{name}.npz")
    weights = {key.removeprefix("w:"): found[key] for key in found if key.startswith("w:")}
    layers = 1 + max(int(key.split(".")[1]) for key in weights if key.startswith("blk."))
    heads, kept = 4, 2
    facts = {
        "block_count": layers,
        "embedding_length": 64,
        "feed_forward_length": 96,
        "attention.head_count": heads,
        "attention.head_count_kv": kept,
        "attention.key_length": weights["blk.0.attn_q.weight"].shape[0] // heads,
        "attention.value_length": weights["blk.0.attn_v.weight"].shape[0] // kept,
        "attention.layer_norm_rms_epsilon": 1e-5,
        "rope.freq_base": 1e6 if name == "gemma3" else 1e4,
        **({"attention.sliding_window": 16} if name == "gemma3" else {}),
    }
    architecture = ARCHITECTURES[name]
    metadata = {"general.architecture": architecture} | {f"{architecture}.{k}": v for k, v in facts.items()}
    tensors = {k: ("F32", a.shape, a.astype(np.float32).tobytes()) for k, a in weights.items()}
    return write(folder / f"{name}.gguf", metadata, tensors)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_tokens_and_logits_are_those_of_pytorch(name: str, tmp_path: Path) -> None:
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
