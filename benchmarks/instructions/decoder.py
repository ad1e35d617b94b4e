"""Writes a Llama with random weights: `python -m benchmarks.instructions.decoder FILE.gguf [--kind Q4_0]`.

Layers are those of SmolLM2-135M; there are fewer of them, and fewer words, since an emulator runs them.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from tests.frontends.gguf.files import random_bytes, write

WIDTH, HEADS, KEPT, HEAD, INNER = 576, 9, 3, 64, 1536
LAYERS, WORDS = 4, 4096


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.instructions.decoder", description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--kind", default="Q4_0", help="format of matrices, as GGUF names it")
    options = parser.parse_args()
    kept, shapes = KEPT * HEAD, dict[str, tuple[int, ...]]()
    shapes |= {"token_embd.weight": (WORDS, WIDTH), "output_norm.weight": (WIDTH,)}
    for n in range(LAYERS):
        layer = {"attn_q": (WIDTH, WIDTH), "attn_k": (kept, WIDTH), "attn_v": (kept, WIDTH)}
        layer |= {"attn_output": (WIDTH, WIDTH), "ffn_gate": (INNER, WIDTH), "ffn_up": (INNER, WIDTH)}
        layer |= {"ffn_down": (WIDTH, INNER), "attn_norm": (WIDTH,), "ffn_norm": (WIDTH,)}
        shapes |= {f"blk.{n}.{name}.weight": shape for name, shape in layer.items()}
    tensors = dict[str, tuple[str, tuple[int, ...], bytes]]()
    for name, shape in shapes.items():
        kind = options.kind if len(shape) == 2 else "F32"
        one = np.ones(shape, np.float32).tobytes()
        tensors[name] = kind, shape, random_bytes(kind, shape, len(tensors)) if len(shape) == 2 else one
    words = {"tokens": [f"t{n}" for n in range(WORDS)], "merges": ["t 0"], "eos_token_id": 2, "bos_token_id": 1}
    metadata: dict[str, object] = {
        "general.architecture": "llama",
        "llama.block_count": LAYERS,
        "llama.context_length": 2048,
        "llama.embedding_length": WIDTH,
        "llama.feed_forward_length": INNER,
        "llama.attention.head_count": HEADS,
        "llama.attention.head_count_kv": KEPT,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "llama.rope.freq_base": 10000.0,
        "llama.rope.dimension_count": HEAD,
        "llama.vocab_size": WORDS,
        "tokenizer.ggml.model": "gpt2",
        **{f"tokenizer.ggml.{key}": value for key, value in words.items()},
    }
    write(options.file, metadata, tensors)


if __name__ == "__main__":
    main()
