"""Writes GGUF files with random weights in the shape of known models: `python -m benchmarks.language.random_gguf FILE`.

Each matrix has the kind that llama.cpp's quantizer gives it: an embedding that is also the head has more bits, and rows
that do not fill a block of 256 are of a kind with blocks of 32.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import islice, product
from pathlib import Path

from tests.frontends.gguf.files import TYPES, random_bytes, write
from tests.text.test_tokenizer import letters


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of a Llama, or of a Qwen 3, whose queries and keys have norms."""

    architecture: str
    layers: int
    width: int
    inner: int
    heads: int
    kept: int  # heads of keys and values
    head: int  # elements of a head
    words: int


SHAPES = {
    "smollm2": Shape("llama", 30, 576, 1536, 9, 3, 64, 49152),
    "qwen3": Shape("qwen3", 28, 1024, 3072, 16, 8, 128, 151936),  # 0.6B
    "llama3": Shape("llama", 16, 2048, 8192, 32, 8, 64, 128256),  # 3.2 1B
    "llama3-8b": Shape("llama", 32, 4096, 14336, 32, 8, 128, 128256),  # 3.1 8B, but for a head of its own
}
EMBEDDINGS = {"Q4_0": "Q6_K", "Q4_K": "Q6_K"}  # kinds of embeddings that are also the head
NARROW = {"Q4_K": "Q5_0", "Q6_K": "Q8_0"}  # kinds of matrices whose rows do not fill a block


def write_random(path: Path, shape: Shape, kind: str, *, texts: bool = False) -> Path:
    """Write a file whose matrices are of this kind; `texts`: its tokens have texts."""
    q, kv, width = shape.heads * shape.head, shape.kept * shape.head, shape.width
    sizes = {"token_embd": (shape.words, width), "output_norm": (width,)}
    for n in range(shape.layers):
        layer = {"attn_q": (q, width), "attn_k": (kv, width), "attn_v": (kv, width), "attn_output": (width, q)}
        layer |= {"ffn_gate": (shape.inner, width), "ffn_up": (shape.inner, width), "ffn_down": (width, shape.inner)}
        norms = {"attn_norm": width, "ffn_norm": width}
        if shape.architecture == "qwen3":
            norms |= {"attn_q_norm": shape.head, "attn_k_norm": shape.head}
        sizes |= {f"blk.{n}.{name}": size for name, size in (layer | {k: (v,) for k, v in norms.items()}).items()}
    tensors: dict[str, tuple[str, tuple[int, ...], Callable[[], bytes]]] = {}
    for name, size in sizes.items():
        own = "F32" if len(size) == 1 else EMBEDDINGS.get(kind, kind) if name == "token_embd" else kind
        own = NARROW.get(own, own) if size[-1] % TYPES[own][1] else own
        tensors[f"{name}.weight"] = (own, size, partial(random_bytes, own, size, len(tensors)))
    return write(path, _metadata(shape) | (_texts(shape.words) if texts else {}), tensors)


def _texts(count: int) -> dict[str, object]:
    """Return a tokenizer of all bytes and of words that are made up; the last token ends an answer."""
    small = [chr(n) for n in range(ord("a"), ord("z") + 1)]
    made = ("Ġ" + "".join(word) for length in (1, 2, 3, 4) for word in product(small, repeat=length))
    words = [*letters(), *islice(made, count - 257), "<|end|>"]
    found: dict[str, object] = {"model": "gpt2", "pre": "gpt-2", "tokens": words, "merges": ["Ġ a"]}
    found |= {"eos_token_id": count - 1, "bos_token_id": count - 1, "add_bos_token": False}
    return {f"tokenizer.ggml.{name}": value for name, value in found.items()}


def _metadata(s: Shape) -> dict[str, object]:
    own: dict[str, object] = {
        "block_count": s.layers,
        "context_length": 4096,
        "embedding_length": s.width,
        "feed_forward_length": s.inner,
        "vocab_size": s.words,
        "attention.head_count": s.heads,
        "attention.head_count_kv": s.kept,
        "attention.key_length": s.head,
        "attention.value_length": s.head,
        "attention.layer_norm_rms_epsilon": 1e-5,
        "rope.dimension_count": s.head,
        "rope.freq_base": 10000.0,
    }
    named = {f"{s.architecture}.{k}": v for k, v in own.items()}
    return {"general.architecture": s.architecture, **named, "tokenizer.ggml.model": "none"}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.language.random_gguf", description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--shape", choices=SHAPES, default="smollm2")
    parser.add_argument("--weights", choices=TYPES, default="Q4_0")
    parser.add_argument("--texts", action="store_true", help="with a tokenizer")
    args = parser.parse_args()
    write_random(args.file, SHAPES[args.shape], args.weights, texts=args.texts)


if __name__ == "__main__":
    main()
